import { createHash } from 'node:crypto'

const maxLength = 64
const clean = /^[A-Za-z0-9_-]+$/
/** 60 bits, so that a server cannot search for a tool name whose hash equals that of another tool. */
const suffixLength = 12
/** A plain name never ends like a suffix, so that it cannot imitate a name with a suffix. Ordinary names do not match. */
const looksSuffixed = /_0[0-9a-v]{12}$/
/** The gateway's own tools begin like this. */
const reserved = /^sallyport_/i

/** `tool` is the tool's own name, or the name that the operator gave it. */
export type Named = { readonly server: string; readonly tool: string }

/** The name of a tool without a suffix; undefined if it contains other characters, is too long or looks like another kind of name. */
export function toPlainName(pattern: string, { server, tool }: Named): string | undefined {
  const plain = fill(pattern, { server, tool: withoutServer(server, tool) })
  const fits = clean.test(plain) && plain.length <= maxLength && !looksSuffixed.test(plain) && !reserved.test(plain)
  return fits ? plain : undefined
}

/** `salt` makes another name of the same tool. */
export function toSuffixedName(pattern: string, { server, tool }: Named, salt = ''): string {
  const readable = fill(pattern, { server, tool: withoutServer(server, tool) }).replace(reserved, 'sallyport-')
  return withSuffix(readable, `${server.length}:${server}${tool}${salt}`)
}

/** A name that does not begin like the names of any other server. */
export function toApartName(pattern: string, { server, tool }: Named, salt: string): string {
  return withSuffix(`own-${fill(pattern, { server, tool })}`, `${server.length}:${server}${tool}${salt}`)
}

/** Whether a pattern makes this name of a tool of this server, such as `git_hub_delete` of `git` and of `git_hub`. */
export function couldBeOf(pattern: string, server: string, name: string): boolean {
  const [before = '', after = ''] = fill(pattern, { server, tool: '\n' }).split('\n')
  return name.length > before.length + after.length && name.startsWith(before) && name.endsWith(after)
}

const earlierServer = /^[A-Za-z0-9-]+$/

/** The name that versions before stored names gave. Rules and grants may contain it. */
export function toEarlierName(pattern: string, { server, tool }: Named): string {
  const plain = fill(pattern, { server, tool })
  const isPlain = earlierServer.test(server) && clean.test(plain) && plain.length <= maxLength
  return isPlain && !looksSuffixed.test(plain) ? plain : withSuffix(plain, `${server.length}:${server}${tool}`)
}

export function toPublicDescription(
  pattern: string,
  facts: { server: string; tool: string; description: string },
): string {
  return fill(pattern, facts)
}

/** A tool whose own name begins with the name of its server is not prefixed again. */
function withoutServer(server: string, tool: string): string {
  const isPrefixed = tool.startsWith(server) && /^[_.-]./s.test(tool.slice(server.length))
  return isPrefixed ? tool.slice(server.length + 1) : tool
}

function fill(pattern: string, values: Readonly<Record<string, string>>): string {
  return pattern.replace(/\{(\w+)\}/g, (placeholder, name: string) => values[name] ?? placeholder)
}

function withSuffix(text: string, hashed: string): string {
  const readable = text.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, maxLength - suffixLength - 2)
  const digest = createHash('sha256').update(hashed).digest()
  const suffix = [...digest.subarray(0, suffixLength)].map((byte) => (byte & 31).toString(32)).join('')
  return `${readable}_0${suffix}`
}
