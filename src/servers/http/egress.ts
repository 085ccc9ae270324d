import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { matchesGlob } from '../../lib/glob.ts'
import { onAbort } from '../../lib/signals.ts'

export type EgressRules = {
  /** True for addresses configured by administrators. Members' servers and addresses from other sources must be public. */
  readonly privateAllowed: boolean
  /** `egress.allow`: private networks and host names that are allowed as exceptions. */
  readonly allow: readonly string[]
}

/** Cloud metadata services that expose secrets of the machine. The library classifies these addresses as public. */
const metadataAddresses: ReadonlySet<string> = new Set(['168.63.129.16'])

/** The target of a TCP connection; `host` as written in the server's `url`. */
export type Origin = { readonly host: string; readonly port: number; readonly secure: boolean }

export type ConnectParts = {
  readonly timeoutMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Bytes from the server. Each socket has one buffer, which is reused after the call. */
  onBytes(bytes: Buffer): void
}

/**
 * Every TCP connection to a server is opened here. All resolved addresses are checked, and the socket connects only to the
 * checked addresses, so that a second DNS lookup cannot lead to another host. Resolves when bytes may be sent, for TLS
 * after the certificate was verified. If it rejects, the server has received no request.
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
    socket.on('error', () => {}) // without a listener an error would crash the process; `once` below reports it
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
    host: isIP(name) ? addresses[0] : name, // an IP address is not looked up, so the checked address is used directly
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    lookup: toPinned(addresses),
    onread: { buffer, callback },
  }
  if (!secure) return connect(options)
  const { connect: connectSecure } = process.getBuiltinModule('node:tls') // 5 MB of memory, loaded only when needed
  // TLS does not allow an IP address as `servername`.
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

/** Returns all addresses: a name such as `localhost` often has one address that answers and one that does not. */
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
    `The host ${host} resolves to the private address ${denied}, which is not allowed`,
    {},
    { reach: 'unsent' },
  )
}

/** Normalises every form of an IP address that a socket accepts: decimal, hexadecimal, short and IPv4-mapped. */
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

/** The only public part of IPv6. Some ranges outside of it embed IPv4 addresses, which may be private. */
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
