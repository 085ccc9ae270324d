import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { GatewayError } from '../contract/errors.ts'

/** The options that every command takes. */
export const GlobalOptions = z.object({
  json: z.boolean().default(false),
  url: z.string().optional(),
  token: z.string().optional(),
  data: z.string().optional(),
  as: z.string().optional(),
  passwordStdin: z.boolean().default(false),
})
export type GlobalOptions = z.infer<typeof GlobalOptions>

export type Settings = {
  /** Given, else the one here, else the user's own, whichever there is. */
  readonly dataFolder: string
  /** Given, else here: where a gateway starts that somebody runs by hand. */
  readonly folderHere: string
  /**
   * Given, else the user's own. Never the one here: programs start others in whatever folder they happen to work in,
   * and a folder from elsewhere must not decide what is run.
   */
  readonly folderOfUser: string
  /** Given on the command line or in the environment; else the data folder knows. */
  readonly url: string | undefined
  readonly token: string | undefined
  /** A PostgreSQL instead of the file in the data folder. It holds a password. */
  readonly databaseUrl: string | undefined
  /** `--data` was written out for this command. */
  readonly dataGiven: boolean
  /** The person who signs in for this one command; its password comes on standard input where nobody can be asked. */
  readonly person?: { readonly name: string; readonly passwordOnInput: boolean }
}

export function toSettings(options: GlobalOptions, env: NodeJS.ProcessEnv): Settings {
  const given = options.data ?? env.SALLYPORT_DATA
  const folderHere = resolve(given ?? '.sallyport')
  const folderOfUser = resolve(given ?? join(homedir(), '.sallyport'))
  return {
    dataFolder: [folderHere, folderOfUser].find((folder) => existsSync(folder)) ?? folderHere,
    folderHere,
    folderOfUser,
    url: options.url ?? (env.SALLYPORT_URL || undefined),
    token: options.token ?? (env.SALLYPORT_TOKEN || undefined),
    databaseUrl: env.SALLYPORT_DATABASE_URL || undefined,
    dataGiven: options.data !== undefined,
    ...(options.as !== undefined && { person: { name: options.as, passwordOnInput: options.passwordStdin } }),
  }
}

/** What a running gateway leaves in its data folder for the commands on the same machine. */
export const GatewayFile = z.object({
  url: z.url(),
  pid: z.int(),
  instance: z.string(),
  /** Nobody started it by hand: it ends by itself when nobody uses it. */
  lingers: z.boolean().default(false),
})
export type GatewayFile = z.infer<typeof GatewayFile>

export function findGatewayFile(dataFolder: string): GatewayFile | undefined {
  const text = readIfThere(join(dataFolder, 'gateway.json'))
  if (text === undefined) return undefined
  try {
    return GatewayFile.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** By a token, or as a person who has signed in: then by the cookie of that. */
export type Address = { readonly url: string } & ({ readonly token: string } | { readonly cookie: string })

/** A change by cookie says that it comes from no other site, as a page of the gateway would. */
export function toCredentials(address: Address): Record<string, string> {
  if ('token' in address) return { authorization: `Bearer ${address.token}` }
  return { cookie: address.cookie, 'sec-fetch-site': 'same-origin' }
}

/** Where the gateway is. */
export function toUrl(settings: Settings): string {
  const url = settings.url ?? findGatewayFile(settings.dataFolder)?.url
  if (url === undefined) {
    throw new GatewayError('unreachable', `No gateway runs with the data folder ${settings.dataFolder}`)
  }
  checkUrl(url)
  return url
}

/** Where the gateway is and by which right we speak to it. */
export function toAddress(settings: Settings): Address & { readonly token: string } {
  const local = findGatewayFile(settings.dataFolder)
  const url = toUrl(settings)
  const token = settings.token ?? findAdminToken(settings, url, local)
  if (token !== undefined) return { url, token }
  throw new GatewayError('token-missing', `There is no token for ${url}: give --token, SALLYPORT_TOKEN or --data`)
}

export function checkUrl(url: string): void {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return
  throw new GatewayError('request-invalid', `${url} is not an address like http://127.0.0.1:4777`)
}

/**
 * The administrator's token goes to the gateway of its own folder and to nobody else: an address from elsewhere
 * gets it only if it is the same one, or if the folder was named along with it.
 */
function findAdminToken(settings: Settings, url: string, local: GatewayFile | undefined): string | undefined {
  const own = settings.dataGiven || (local !== undefined && isSameGateway(url, local.url))
  return own ? findAdminTokenFile(settings.dataFolder) : undefined
}

export function findAdminTokenFile(dataFolder: string): string | undefined {
  return readIfThere(join(dataFolder, 'admin-token'))?.trim() || undefined
}

function isSameGateway(left: string, right: string): boolean {
  return toOrigin(left) === toOrigin(right)
}

function toOrigin(text: string): string {
  const { protocol, hostname, port } = new URL(text)
  const host = ['localhost', '127.0.0.1', '[::1]'].includes(hostname) ? 'loopback' : hostname
  return `${protocol}//${host}:${port}`
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EACCES') {
      throw new GatewayError('forbidden', `${file} may not be read by this user`)
    }
    return undefined
  }
}
