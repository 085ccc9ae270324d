import { createHash } from 'node:crypto'

const maxLength = 64
const clean = /^[A-Za-z0-9_-]+$/
/** Without `_` in the server's name, the first `_` of a public name is always the separator. */
const cleanServer = /^[A-Za-z0-9-]+$/
/** 60 bits, so that a server cannot search for a tool name whose hash equals that of another tool. */
const suffixLength = 12
/** A name that looks like it has a hash gets one too, so that it cannot equal a name with a hash. Ordinary names do not match. */
const looksSuffixed = /_0[0-9a-v]{12}$/

/**
 * The public name of a tool. It depends only on the names of server and tool, so it is the same after a restart and when other
 * servers are added or removed. If characters must be replaced or cut, the name ends in a hash of both names.
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
