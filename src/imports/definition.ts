import { findServerFault } from '../config/config.ts'
import type { ScopedServer } from '../contract/config.ts'
import type { Note, StatedServer } from '../formats/formats.ts'
import { findPlaceholders, type Literal, replaceLiterals, toPlaceKey } from '../masking/masking.ts'

export type Prepared = {
  readonly definition: ScopedServer
  readonly notes: readonly Note[]
  /** Secrets that the file leaves open, such as `<your-token>`. */
  readonly open: readonly Literal[]
}

/** The definition as it can be saved, or the reason why it cannot. Values never appear in notes. */
export function prepare(name: string, title: string | undefined, stated: StatedServer): Prepared | { refused: string } {
  const notes: Note[] = []
  const note = (field: string, message: string): void => void notes.push({ field, message })
  const moved = moveCredentials(stated, note)
  if ('refused' in moved) return moved
  const described = cutDescription(withTitle(moved, title ?? moved.title), note)
  const open = findPlaceholders(name, described).filter(({ secret }) => secret !== '')
  for (const { place } of open) note(toPlaceKey(place), 'has a placeholder: store the value as a secret')
  const definition = replaceLiterals(described, open, (literal) => `\${${literal.name}}`)
  const fault = findServerFault(name, definition)
  if (fault !== undefined) return { refused: fault }
  return { definition, notes, open }
}

function withTitle(definition: StatedServer, title: string | undefined): StatedServer {
  const { title: _title, ...rest } = definition
  return title === undefined ? rest : { ...rest, title }
}

const longestDescription = 1024

function cutDescription(definition: StatedServer, note: (field: string, message: string) => void): StatedServer {
  const { description } = definition
  if (description === undefined || description.length <= longestDescription) return definition
  note('description', `is longer than ${longestDescription} characters and was cut`)
  return { ...definition, description: description.slice(0, longestDescription).toWellFormed() }
}

/** `https://user:password@host` becomes a header, whose value is moved into a secret like every other one. */
function moveCredentials(
  definition: StatedServer,
  note: (field: string, message: string) => void,
): StatedServer | { refused: string } {
  const { url, headers = {} } = definition
  const match = /^(https?:\/\/)([^/?#]*)@(.*)$/is.exec(url ?? '')
  if (url === undefined || match === null) return definition
  const [, scheme = '', credentials = '', rest = ''] = match
  if (credentials.includes('${'))
    return { refused: 'url has a variable as user name or password; write them as a header' }
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization'))
    return { refused: 'url has a user name or password, and there is a header Authorization too' }
  const decoded = decode(credentials)
  if (decoded === undefined) return { refused: 'url has a user name or password that is not encoded correctly' }
  note('url', 'had a user name or password, which are sent as the header Authorization instead')
  const value = Buffer.from(decoded.includes(':') ? decoded : `${decoded}:`).toString('base64')
  return { ...definition, url: scheme + rest, headers: { ...headers, Authorization: `Basic ${value}` } }
}

function decode(credentials: string): string | undefined {
  const colon = credentials.indexOf(':')
  const parts = colon === -1 ? [credentials] : [credentials.slice(0, colon), credentials.slice(colon + 1)]
  try {
    return parts.map(decodeURIComponent).join(':')
  } catch {
    return undefined
  }
}
