import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { Listen } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { valuesOf } from './raw-headers.ts'

/** Throws unless the request is for us; gives the host by which we were asked. */
export type HostCheck = (request: IncomingMessage) => string

const plainHost = /^(?:[a-z0-9](?:[a-z0-9.-]{0,253})|\[[0-9a-f:.]+\])(?::\d{1,5})?$/

/** Web pages must not reach the gateway by renaming an address: only known hosts are answered, and known origins. */
export function createHostCheck(listen: Listen, port: () => number): HostCheck {
  const publicHost = listen.publicUrl === undefined ? [] : [new URL(listen.publicUrl).host]
  const named = new Set([...publicHost, ...listen.allowedHosts].map((host) => host.toLowerCase()))
  const own = new Set(['127.0.0.1', 'localhost', '[::1]', bracketed(listen.host).toLowerCase()])

  /** For the one who sets it up; neither name nor port is a secret. */
  function expected(): string {
    const hosts = [...named, ...[...own].slice(0, 2).map((host) => `${host}:${port()}`)]
    return hosts.join(', ')
  }

  function isKnown(host: string, usualPort: number): boolean {
    if (!plainHost.test(host)) return false
    const name = host.replace(/:\d+$/, '')
    const from = name === host ? usualPort : Number(host.slice(name.length + 1))
    // An allowed host without a port stands for it with any.
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
      throw new GatewayError(
        'host-not-allowed',
        `This gateway does not answer to the host ${shown(host)}, only to ${expected()}`,
      )
    const { origin } = request.headers
    if (origin === undefined || isTrustedOrigin(origin)) return host
    throw new GatewayError(
      'origin-not-allowed',
      `Pages of ${shown(origin)} may not call this gateway, only its own at ${expected()}`,
    )
  }
}

/** The port that a client leaves out. */
const usualPorts: ReadonlyMap<string, number> = new Map([
  ['http:', 80],
  ['https:', 443],
])

/** Behind a trusted proxy the host is the one that the proxy was asked for. */
function hostOf(request: IncomingMessage, trustedProxies: readonly string[]): string {
  // Two would let a proxy go by one and us by the other.
  const [host = '', ...others] = valuesOf(request, 'host')
  if (others.length > 0) throw new GatewayError('request-invalid', 'The request names several hosts')
  const forwarded = request.headers['x-forwarded-host']
  if (typeof forwarded !== 'string' || !isTrusted(request.socket.remoteAddress, trustedProxies)) return host
  return forwarded.split(',')[0]?.trim() ?? host
}

/** Where a request comes from: behind trusted proxies the last address that they did not add themselves. */
export function toClientAddress(request: IncomingMessage, trustedProxies: readonly string[]): string {
  const own = request.socket.remoteAddress ?? ''
  if (!isTrusted(own, trustedProxies)) return toNetwork(own)
  const forwarded = String(request.headers['x-forwarded-for'] ?? '').split(',')
  const from = forwarded
    .map((entry) => entry.trim())
    .findLast((entry) => entry !== '' && !isTrusted(entry, trustedProxies))
  return toNetwork(from ?? own)
}

/** One house has one network of the newer addresses, and billions of them in it. */
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
