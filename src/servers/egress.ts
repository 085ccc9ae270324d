import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'
import { GatewayError } from '../contract/errors.ts'
import { matchesGlob } from '../lib/glob.ts'

export type EgressRules = {
  /** An administrator's own servers may stand anywhere; addresses found elsewhere may not. */
  readonly privateAllowed: boolean
  /** `egress.allow`: networks and host names that are permitted all the same. */
  readonly allow: readonly string[]
}

/** Reported as ordinary addresses by the library, but they serve secrets of the machine itself. */
const metadataAddresses: ReadonlySet<string> = new Set(['168.63.129.16'])

/**
 * The one connector towards servers. The literal address and every resolved one are checked, and the connection is
 * made to the checked addresses themselves, so that a second look-up cannot lead elsewhere.
 */
export function createGuardedConnector(rules: EgressRules, connectTimeoutMs: number): buildConnector.connector {
  return (options, callback) => {
    pickAddresses(options.hostname, rules).then(
      ([first, ...others]) => {
        const pinned = buildConnector({
          timeout: connectTimeoutMs,
          lookup: (_host, lookupOptions, done) => {
            if (!lookupOptions.all) return done(null, first, isIP(first))
            done(
              null,
              [first, ...others].map((address) => ({ address, family: isIP(address) })),
            )
          },
        })
        pinned(options, callback)
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    )
  }
}

/** All of them: a name such as `localhost` often has one address that answers and one that does not. */
async function pickAddresses(hostname: string, rules: EgressRules): Promise<readonly [string, ...string[]]> {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const literal = toAddress(host)
  const found = literal === undefined ? await resolve(host) : [literal]
  const [first, ...others] = found
  if (first === undefined) throw new GatewayError('connect-failed', `The host ${host} has no address`, { sent: false })
  if (rules.privateAllowed || rules.allow.some((entry) => !entry.includes('/') && matchesGlob(entry, host)))
    return [first, ...others]
  const denied = found.find((address) => !isAllowed(address, rules.allow))
  if (denied === undefined) return [first, ...others]
  throw new GatewayError('egress-denied', `The host ${host} leads to the private address ${denied}`, { sent: false })
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
    throw new GatewayError('connect-failed', `The host ${host} was not found`, { sent: false }, { cause: error })
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
