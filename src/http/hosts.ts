import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { Listen } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { valuesOf } from './raw-headers.ts'

/** Returns the host of the request. Throws if host or origin is not allowed. */
export type HostCheck = (request: IncomingMessage) => string

const plainHost = /^(?:[a-z0-9](?:[a-z0-9.-]{0,253})|\[[0-9a-f:.]+\])(?::\d{1,5})?$/

/** Protects against DNS rebinding: only known hosts and origins are allowed. */
export function createHostCheck(listen: Listen, port: () => number): HostCheck {
  const publicHost = listen.publicUrl === undefined ? [] : [new URL(listen.publicUrl).host]
  const named = new Set([...publicHost, ...listen.allowedHosts].map((host) => host.toLowerCase()))
  const own = new Set(['127.0.0.1', 'localhost', '[::1]', bracketed(listen.host).toLowerCase()])

  /** Allowed hosts for the error message; names and ports are not secret. */
  function expected(): string {
    const hosts = [...named, ...[...own].slice(0, 2).map((host) => `${host}:${port()}`)]
    return hosts.join(', ')
  }

  function isKnown(host: string, usualPort: number): boolean {
    if (!plainHost.test(host)) return false
    const name = host.replace(/:\d+$/, '')
    const from = name === host ? usualPort : Number(host.slice(name.length + 1))
    // An allowed host without a port matches any port.
    return (own.has(name) && from === port()) || named.has(name) || named.has(`${name}:${from}`)
  }

  function isTrustedOrigin(origin: string): boolean {
    if (!URL.canParse(origin)) return false
    const { protocol, host } = new URL(origin)
    const usualPort = usualPorts.get(protocol)
    return usualPort !== undefined && isKnown(host.toLowerCase(), usualPort)
  }

  return (request) => {
    const host = hostOf(request, listen.trustedProxies).toLowerCase()
    if (!isKnown(host, listen.tls ? 443 : 80))
      throw new GatewayError('host-not-allowed', `The host ${shown(host)} is not allowed. Allowed: ${expected()}`)
    const { origin } = request.headers
    if (origin === undefined || isTrustedOrigin(origin)) return host
    throw new GatewayError(
      'origin-not-allowed',
      `Requests from pages of ${shown(origin)} are not allowed. Allowed: ${expected()}`,
    )
  }
}

/** Default ports, which clients omit. */
const usualPorts: ReadonlyMap<string, number> = new Map([
  ['http:', 80],
  ['https:', 443],
])

/** The host of the request; behind a trusted proxy, the forwarded host. */
function hostOf(request: IncomingMessage, trustedProxies: readonly string[]): string {
  // With two host headers, a proxy could use one and the gateway the other.
  const [host = '', ...others] = valuesOf(request, 'host')
  if (others.length > 0) throw new GatewayError('request-invalid', 'The request has several host headers')
  const forwarded = request.headers['x-forwarded-host']
  if (typeof forwarded !== 'string' || !isTrusted(request.socket.remoteAddress, trustedProxies)) return host
  return forwarded.split(',')[0]?.trim() ?? host
}

/** Address of the client; behind trusted proxies, the last forwarded address that is not a trusted proxy. */
export function toClientAddress(request: IncomingMessage, trustedProxies: readonly string[]): string {
  const own = request.socket.remoteAddress ?? ''
  if (!isTrusted(own, trustedProxies)) return toNetwork(own)
  const forwarded = String(request.headers['x-forwarded-for'] ?? '').split(',')
  const from = forwarded
    .map((entry) => entry.trim())
    .findLast((entry) => entry !== '' && !isTrusted(entry, trustedProxies))
  return toNetwork(from ?? own)
}

/** The /64 network of an IPv6 address, because one client can use all addresses of its network. */
function toNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return 'unknown'
  const parsed = ipaddr.process(address)
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString()
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}

function isTrusted(address: string | undefined, trustedProxies: readonly string[]): boolean {
  if (address === undefined || !ipaddr.isValid(address)) return false
  const from = ipaddr.process(address)
  return trustedProxies.some((entry) => {
    if (!ipaddr.isValidCIDR(entry)) return ipaddr.isValid(entry) && ipaddr.process(entry).toString() === from.toString()
    const [network, bits] = ipaddr.parseCIDR(entry)
    return network.kind() === from.kind() && from.match(network, bits)
  })
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}
