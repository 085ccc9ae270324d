import { createHash } from 'node:crypto'

const maxLength = 64
const clean = /^[A-Za-z0-9_-]+$/
/** A server's name without `_` leaves the first `_` of the public name as the one separator. */
const cleanServer = /^[A-Za-z0-9-]+$/
/** Sixty bits: two names that meet cannot be looked for, neither by a server among its own nor for another's. */
const suffixLength = 12
/** Hardly any tool is called like this by itself, so that ordinary names stay as they are. */
const looksSuffixed = /_0[0-9a-v]{12}$/

/**
 * The public name of a tool: a pure function of its server and its own name, so that it is the same after a restart
 * and whatever other servers come and go. What cannot be kept letter by letter ends in a hash of both names.
 */
export function toPublicName(pattern: string, server: string, tool: string): string {
  const plain = fill(pattern, { server, tool })
  if (cleanServer.test(server) && clean.test(plain) && plain.length <= maxLength && !looksSuffixed.test(plain))
    return plain
  const readable = plain.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, maxLength - suffixLength - 2)
  return `${readable}_0${suffix(server, tool)}`
}

export function toPublicDescription(
  pattern: string,
  facts: { server: string; tool: string; description: string },
): string {
  return fill(pattern, facts)
}

function fill(pattern: string, values: Readonly<Record<string, string>>): string {
  return pattern.replace(/\{(\w+)\}/g, (placeholder, name: string) => values[name] ?? placeholder)
}

function suffix(server: string, tool: string): string {
  const digest = createHash('sha256').update(`${server.length}:${server}${tool}`).digest()
  return [...digest.subarray(0, suffixLength)].map((byte) => (byte & 31).toString(32)).join('')
}
