import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { matchesGlob } from '../../lib/glob.ts'
import { onAbort } from '../../lib/signals.ts'

export type EgressRules = {
  /** Servers whose address an administrator wrote may stand anywhere; members' servers and addresses found elsewhere may not. */
  readonly privateAllowed: boolean
  /** `egress.allow`: networks and host names that are permitted all the same. */
  readonly allow: readonly string[]
}

/** Reported as ordinary addresses by the library, but they serve secrets of the machine itself. */
const metadataAddresses: ReadonlySet<string> = new Set(['168.63.129.16'])

/** Where a connection leads to; `host` as it stands in the address of the server. */
export type Origin = { readonly host: string; readonly port: number; readonly secure: boolean }

export type ConnectParts = {
  readonly timeoutMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Bytes from the server, lent for the time of the call: a connection has one buffer for all that it reads. */
  onBytes(bytes: Buffer): void
}

/**
 * The one connector towards servers. The literal address and every resolved one are checked, and the connection is
 * made to the checked addresses themselves, so that a second look-up cannot lead elsewhere. Resolves when bytes may be
 * sent, after the proof of identity where there is one; whatever fails before that, the server has seen no request.
 */
export async function connectGuarded(origin: Origin, rules: EgressRules, parts: ConnectParts): Promise<Socket> {
  const { timeoutMs, clock, signal } = parts
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const cancel = clock.after(timeoutMs, () => reject(notConnected('ETIMEDOUT')))
  const unlink = onAbort(signal, () => reject(signal.reason))
  let socket: Socket | undefined
  try {
    const addresses = await Promise.race([pickAddresses(origin.host, rules), stopped])
    socket = open(origin, addresses, parts.onBytes)
    socket.on('error', () => {}) // somebody hears it at every moment; what it means is told by `once` or by the end
    await Promise.race([once(socket, origin.secure ? 'secureConnect' : 'connect'), stopped])
    return socket
  } catch (error) {
    socket?.destroy()
    if (error instanceof GatewayError || signal.aborted) throw error
    throw notConnected(error instanceof Error && 'code' in error ? String(error.code) : 'unknown', error)
  } finally {
    cancel()
    unlink()
  }
}

const readBytes = 64 * 1024

function open(
  { host, port, secure }: Origin,
  addresses: readonly [string, ...string[]],
  onBytes: (bytes: Buffer) => void,
): Socket {
  const name = bareHost(host)
  const buffer = Buffer.allocUnsafeSlow(readBytes)
  const callback = (bytes: number) => {
    onBytes(buffer.subarray(0, bytes))
    return true
  }
  const options = {
    host: isIP(name) ? addresses[0] : name, // a literal is not looked up: it stands for the address that was checked
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    lookup: toPinned(addresses),
    onread: { buffer, callback },
  }
  if (!secure) return connect(options)
  const { connect: connectSecure } = process.getBuiltinModule('node:tls') // 5 MB, for those who need it
  // An address is proven by the addresses in the certificate, a name also by asking for it.
  return connectSecure({ ...options, servername: isIP(name) ? '' : name, ALPNProtocols: ['http/1.1'] })
}

function toPinned([first, ...others]: readonly [string, ...string[]]): LookupFunction {
  return (_host, options, done) => {
    if (!options.all) return done(null, first, isIP(first))
    done(
      null,
      [first, ...others].map((address) => ({ address, family: isIP(address) })),
    )
  }
}

function notConnected(errno: string, cause?: unknown): GatewayError {
  return new GatewayError(
    'connect-failed',
    `No connection to the server (${errno})`,
    { errno },
    { cause, reach: 'unsent' },
  )
}

function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/** All of them: a name such as `localhost` often has one address that answers and one that does not. */
async function pickAddresses(hostname: string, rules: EgressRules): Promise<readonly [string, ...string[]]> {
  const host = bareHost(hostname)
  const literal = toAddress(host)
  const found = literal === undefined ? await resolve(host) : [literal]
  const [first, ...others] = found
  if (first === undefined)
    throw new GatewayError('connect-failed', `The host ${host} has no address`, {}, { reach: 'unsent' })
  if (rules.privateAllowed || rules.allow.some((entry) => !entry.includes('/') && matchesGlob(entry, host)))
    return [first, ...others]
  const denied = found.find((address) => !isAllowed(address, rules.allow))
  if (denied === undefined) return [first, ...others]
  throw new GatewayError(
    'egress-denied',
    `The host ${host} leads to the private address ${denied}`,
    {},
    { reach: 'unsent' },
  )
}

/** Every spelling that a socket would take: decimal, hexadecimal, short forms, mapped and bracketed ones. */
function toAddress(host: string): string | undefined {
  if (!ipaddr.isValid(host)) return undefined
  return ipaddr.process(host).toString()
}

async function resolve(host: string): Promise<string[]> {
  try {
    const found = await lookup(host, { all: true, verbatim: true })
    return found.map(({ address }) => address)
  } catch (error) {
    throw new GatewayError('connect-failed', `The host ${host} was not found`, {}, { cause: error, reach: 'unsent' })
  }
}

export function isAllowed(address: string, allow: readonly string[]): boolean {
  const parsed = ipaddr.process(address)
  if (allow.some((entry) => inNetwork(parsed, entry))) return true
  return parsed.range() === 'unicast' && isGlobal(parsed) && !metadataAddresses.has(parsed.toString())
}

/** Of IPv6 only this part is given out to the world; outside of it, old forms still hold addresses of IPv4. */
const globalNetwork = '2000::/3'

function isGlobal(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return address.kind() === 'ipv4' || inNetwork(address, globalNetwork)
}

function inNetwork(address: ipaddr.IPv4 | ipaddr.IPv6, entry: string): boolean {
  if (!entry.includes('/')) return ipaddr.isValid(entry) && ipaddr.process(entry).toString() === address.toString()
  if (!ipaddr.isValidCIDR(entry)) return false
  const [network, bits] = ipaddr.parseCIDR(entry)
  return network.kind() === address.kind() && address.match(network, bits)
}
