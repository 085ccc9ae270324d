import { networkInterfaces } from 'node:os'
import { GatewayError } from '../../contract/errors.ts'
import { demandOwnFolder, findAdminToken, findGatewayFile, isOwnFolder } from './data-folder.ts'
import { demandProof } from './proof.ts'
import type { Settings } from './settings.ts'

/** Address of the gateway, with a token or with the cookie of a signed-in user. */
export type Address = { readonly url: string } & ({ readonly token: string } | { readonly cookie: string })

/** With a cookie, the gateway accepts changes only from its own pages, which browsers mark with this header. */
export function toCredentials(address: Address): Record<string, string> {
  if ('token' in address) return { authorization: `Bearer ${address.token}` }
  return { cookie: address.cookie, 'sec-fetch-site': 'same-origin' }
}

/** Address of the gateway. If it comes from a data folder, the gateway has proven that it belongs to that folder. */
export async function findUrl(settings: Settings): Promise<string> {
  const { url, dataFolder } = settings
  if (url === undefined) return (await findLocal(settings)).url
  const noted = isOwnFolder(settings) ? findNoted(dataFolder, checkUrl(url)) : undefined
  const proven = noted !== undefined && (await proveGateway(dataFolder, noted).catch(() => undefined))
  return proven ? noted : checkUrl(url)
}

/** Address of the gateway with the token to use. */
export async function findAddress(settings: Settings): Promise<Address & { readonly token: string }> {
  const { url, token, dataFolder, dataGiven } = settings
  if (url === undefined) {
    const local = await findLocal(settings)
    return { url: local.url, token: token ?? local.token }
  }
  checkUrl(url)
  if (token !== undefined) return { url, token }
  demandOwnFolder(settings, dataFolder)
  const noted = findNoted(dataFolder, url)
  if (noted !== undefined) return { url: noted, token: await proveGateway(dataFolder, noted) }
  // Send the admin token to an address that was given only if --data was given too.
  const own = dataGiven ? findAdminToken(dataFolder) : undefined
  if (own === undefined)
    throw new GatewayError('token-missing', `No token for ${url}: give --token, SALLYPORT_TOKEN or --data`)
  await demandProof({ url, token: own })
  return { url, token: own }
}

/**
 * The address in `gateway.json` of the data folder, if the given address means the same gateway. It replaces the given
 * address: another program could listen on another loopback address with the same port and forward requests.
 */
function findNoted(dataFolder: string, url: string): string | undefined {
  const noted = findGatewayFile(dataFolder)?.url
  return noted !== undefined && isSameGateway(url, noted) ? noted : undefined
}

async function findLocal(settings: Settings): Promise<{ url: string; token: string }> {
  const { dataFolder } = settings
  demandOwnFolder(settings, dataFolder)
  const url = findGatewayFile(dataFolder)?.url
  if (url === undefined) throw new GatewayError('unreachable', `No gateway runs on the data folder ${dataFolder}`)
  return { url, token: await proveGateway(dataFolder, url) }
}

/** Returns the admin token of the folder. Throws unless the gateway at this address proves that it knows that token. */
export async function proveGateway(dataFolder: string, url: string): Promise<string> {
  checkUrl(url)
  if (!isOnThisMachine(url)) {
    const message = `gateway.json in ${dataFolder} names ${url}, which is not an address of this machine`
    throw new GatewayError('unreachable', `${message}: use --gateway to choose that gateway`)
  }
  const token = findAdminToken(dataFolder)
  if (token === undefined)
    throw new GatewayError(
      'token-missing',
      `${dataFolder} contains no admin-token file, which is needed to verify its gateway`,
    )
  await demandProof({ url, token, listensAt: url })
  return token
}

export function checkUrl(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url
  throw new GatewayError('request-invalid', `${url} is not an address like http://127.0.0.1:4777`)
}

function isOnThisMachine(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  if (host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)) return true
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === host))
}

function isSameGateway(left: string, right: string): boolean {
  return toOrigin(left) === toOrigin(right)
}

function toOrigin(text: string): string {
  const { protocol, hostname, port } = new URL(text)
  const host = ['localhost', '127.0.0.1', '[::1]'].includes(hostname) ? 'loopback' : hostname
  return `${protocol}//${host}:${port}`
}
