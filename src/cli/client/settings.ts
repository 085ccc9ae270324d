import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { z } from 'zod'

/** The options that every command takes. */
export const GlobalOptions = z.object({
  json: z.boolean().default(false),
  gateway: z.string().optional(),
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
  /** The data folder was named by `--data` or `SALLYPORT_DATA`, not found. */
  readonly dataNamed: boolean
  /** The person who signs in for this one command; its password comes on standard input where nobody can be asked. */
  readonly person?: { readonly name: string; readonly passwordOnInput: boolean }
}

export function toSettings(options: GlobalOptions, env: NodeJS.ProcessEnv): Settings {
  const given = options.data ?? (env.SALLYPORT_DATA || undefined)
  const folderHere = resolve(given ?? '.sallyport')
  const folderOfUser = resolve(given ?? join(homedir(), '.sallyport'))
  return {
    dataFolder: [folderHere, folderOfUser].find((folder) => existsSync(folder)) ?? folderHere,
    folderHere,
    folderOfUser,
    url: options.gateway ?? options.url ?? (env.SALLYPORT_URL || undefined),
    token: options.token ?? (env.SALLYPORT_TOKEN || undefined),
    databaseUrl: env.SALLYPORT_DATABASE_URL || undefined,
    dataGiven: options.data !== undefined,
    dataNamed: given !== undefined,
    ...(options.as !== undefined && { person: { name: options.as, passwordOnInput: options.passwordStdin } }),
  }
}
