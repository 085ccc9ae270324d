import { networkInterfaces } from 'node:os'
import { GatewayError } from '../../contract/errors.ts'
import { demandOwnFolder, findAdminToken, findGatewayFile, isOwnFolder } from './data-folder.ts'
import { demandProof } from './proof.ts'
import type { Settings } from './settings.ts'

/** By a token, or as a person who has signed in: then by the cookie of that. */
export type Address = { readonly url: string } & ({ readonly token: string } | { readonly cookie: string })

/** A change by cookie says that it comes from no other site, as a page of the gateway would. */
export function toCredentials(address: Address): Record<string, string> {
  if ('token' in address) return { authorization: `Bearer ${address.token}` }
  return { cookie: address.cookie, 'sec-fetch-site': 'same-origin' }
}

/** Where the gateway is. One of a data folder has proven that it is the gateway of that folder. */
export async function findUrl(settings: Settings): Promise<string> {
  const { url, dataFolder } = settings
  if (url === undefined) return (await findLocal(settings)).url
  const noted = isOwnFolder(settings) ? findNoted(dataFolder, checkUrl(url)) : undefined
  const proven = noted !== undefined && (await proveGateway(dataFolder, noted).catch(() => undefined))
  return proven ? noted : checkUrl(url)
}

/** Where the gateway is and by which right we speak to it. */
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
  // Else the administrator's token is only for an address that was named along with the folder.
  const own = dataGiven ? findAdminToken(dataFolder) : undefined
  if (own === undefined)
    throw new GatewayError('token-missing', `There is no token for ${url}: give --token, SALLYPORT_TOKEN or --data`)
  await demandProof({ url, token: own })
  return { url, token: own }
}

/**
 * The address in the note of a data folder, if the given one means the same gateway. It is used instead of the given one:
 * another program can listen on another loopback address at the same port, and pass questions on to the gateway.
 */
function findNoted(dataFolder: string, url: string): string | undefined {
  const noted = findGatewayFile(dataFolder)?.url
  return noted !== undefined && isSameGateway(url, noted) ? noted : undefined
}

async function findLocal(settings: Settings): Promise<{ url: string; token: string }> {
  const { dataFolder } = settings
  demandOwnFolder(settings, dataFolder)
  const url = findGatewayFile(dataFolder)?.url
  if (url === undefined) throw new GatewayError('unreachable', `No gateway runs with the data folder ${dataFolder}`)
  return { url, token: await proveGateway(dataFolder, url) }
}

/** Makes sure that the gateway of this folder answers at the address in its note; gives the token of the folder. */
export async function proveGateway(dataFolder: string, url: string): Promise<string> {
  checkUrl(url)
  if (!isOnThisMachine(url)) {
    const message = `gateway.json in ${dataFolder} names ${url}, which is not an address of this machine`
    throw new GatewayError('unreachable', `${message}: use --gateway to choose that gateway`)
  }
  const token = findAdminToken(dataFolder)
  if (token === undefined)
    throw new GatewayError('token-missing', `${dataFolder} has no admin-token by which its gateway could be recognised`)
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
