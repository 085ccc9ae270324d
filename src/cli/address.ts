import { networkInterfaces } from 'node:os'
import { GatewayError } from '../contract/errors.ts'
import { demandOwnFolder, findAdminToken, findGatewayFile } from './data-folder.ts'
import { demandProof } from './proof.ts'
import type { Settings } from './settings.ts'

/** By a token, or as a person who has signed in: then by the cookie of that. */
export type Address = { readonly url: string } & ({ readonly token: string } | { readonly cookie: string })

/** A change by cookie says that it comes from no other site, as a page of the gateway would. */
export function toCredentials(address: Address): Record<string, string> {
  if ('token' in address) return { authorization: `Bearer ${address.token}` }
  return { cookie: address.cookie, 'sec-fetch-site': 'same-origin' }
}

/** Where the gateway is. An address from the data folder has proven that it is the gateway of that folder. */
export async function findUrl(settings: Settings): Promise<string> {
  if (settings.url !== undefined) return checkUrl(settings.url)
  return (await findLocal(settings)).url
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
  // The administrator's token is only for the gateway of its own folder, or for an address named along with the folder.
  const noted = findGatewayFile(dataFolder)?.url
  const same = noted !== undefined && isSameGateway(url, noted)
  const own = same || dataGiven ? findAdminToken(dataFolder) : undefined
  if (own === undefined)
    throw new GatewayError('token-missing', `There is no token for ${url}: give --token, SALLYPORT_TOKEN or --data`)
  await demandProof({ url, token: own, ...(same && { listensAt: noted }) })
  return { url, token: own }
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
    throw new GatewayError('unreachable', `${message}: name it with --url if you mean it`)
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
