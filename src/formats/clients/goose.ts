import { clientTitles } from '../../contract/client.ts'
import { own, type PlainObject } from '../../documents/values.ts'
import type { Draft } from '../draft.ts'
import type { Entry } from '../entry.ts'
import type { Codec, Refusal, StatedServer } from '../format.ts'
import { joinCanonical, keepVariableName, type Piece, plainNotation, splitCanonical, toTemplate } from '../notation.ts'
import { entriesAt, leastTime, readLocal, readRemote, readTime, readTitle, toToolGlobs } from '../read.ts'

/** `~/.config/goose/config.yaml`. Secrets are in the keyring, and the file has only their names. */
export const goose: Codec = {
  client: 'goose',
  title: clientTitles.goose,
  format: 'yaml',
  notation: plainNotation,
  home: () => ['extensions'],
  likeness: (document) =>
    entriesAt(document, ['extensions']).some(({ cmd, uri, type }) => cmd || uri || type) ? 8 : 0,
  read(entry) {
    const definition = readDefinition(entry)
    if ('refused' in definition) return definition
    entry.ignore('display_name', 'bundled')
    const include = toToolGlobs(entry, 'available_tools')
    const call = readTime(entry, 'timeout', { unit: 1000, least: leastTime.call })
    return {
      ...definition,
      title: readTitle(entry, 'name'),
      description: entry.text('description') || undefined,
      enabled: entry.flag('enabled') === false ? false : undefined,
      tools: include === undefined || include.length === 0 ? undefined : { include },
      timeout: call === undefined ? undefined : { call },
    }
  },
  write(draft) {
    if (draft.transport === 'sse') return { refused: 'uses HTTP+SSE, which Goose no longer supports' }
    const call = draft.time('timeout.call')
    return {
      name: draft.text('title') ?? draft.name,
      description: draft.text('description'),
      enabled: draft.take('enabled') !== false,
      ...(draft.transport === 'stdio' ? writeLocal(draft) : writeRemote(draft)),
      timeout: call === undefined ? undefined : call / 1000,
      // An empty list means all tools there.
      available_tools: draft.toolNames('tools.include', 1),
    }
  },
}

const builtIn = ['builtin', 'platform', 'frontend', 'inline_python']

function readDefinition(entry: Entry): StatedServer | Refusal {
  const type = entry.text('type')
  if (type !== undefined && builtIn.includes(type)) return { refused: 'is a part of Goose and not an MCP server' }
  if (type === 'sse') return withSecrets(entry, readRemote(entry, { transport: 'sse', url: 'uri', headers: false }))
  if (type === 'streamable_http')
    return withSecrets(entry, readRemote(entry, { transport: 'http', url: 'uri', headers: false }))
  if (type !== 'stdio') return { refused: type === undefined ? 'type is missing' : 'has an unknown type' }
  const definition = readLocal(entry, { command: 'cmd', env: 'envs' })
  if ('refused' in definition) return definition
  return { ...definition, env: { ...definition.env, ...fromKeyring(entry) } }
}

function fromKeyring(entry: Entry): Record<string, string> {
  const names = entry.texts('env_keys') ?? []
  for (const name of names) entry.need({ name: keepVariableName(name), secret: true })
  return Object.fromEntries(names.map((name) => [name, toTemplate({ name: keepVariableName(name) })]))
}

/** `$NAME` in a header is a value of `envs` or of the keyring. */
function withSecrets(entry: Entry, definition: StatedServer | Refusal): StatedServer | Refusal {
  if ('refused' in definition) return definition
  const values = { ...entry.templateRecord('envs'), ...fromKeyring(entry) }
  const used = new Set<string>()
  const replace = (text: string): string => {
    const pieces: Piece[] = []
    let end = 0
    for (const match of text.matchAll(/\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)/g)) {
      const name = match[1] ?? match[2] ?? ''
      const value = own(values, name)
      if (value !== undefined) used.add(name)
      const known = value === undefined ? undefined : splitCanonical(value)
      pieces.push(text.slice(end, match.index), ...(known ?? [match[1] === undefined ? match[0] : { name }]))
      end = match.index + match[0].length
    }
    return joinCanonical([...pieces, text.slice(end)])
  }
  const headers = Object.entries(entry.record('headers') ?? {}).map(([header, text]) => [header, replace(text)])
  for (const name of Object.keys(values)) {
    if (!used.has(name)) entry.note('envs', `${name} is not used in a header; a server at an address has no variables`)
  }
  return { ...definition, headers: headers.length === 0 ? undefined : Object.fromEntries(headers) }
}

function writeLocal(draft: Draft): PlainObject {
  const texts: Record<string, string> = {}
  const names: string[] = []
  for (const [name, text] of draft.pairs('env')) {
    const pieces = splitCanonical(text)
    if (pieces.every((piece) => typeof piece === 'string')) texts[name] = draft.fill(`env.${name}`, text)
    else names.push(name)
    if (names.includes(name) && text !== toTemplate({ name })) {
      draft.note(`env.${name}`, `Goose has no templates here: store the whole value as the secret ${name}`)
    }
  }
  const { command, args } = draft.local()
  return { type: 'stdio', cmd: command, args, envs: texts, env_keys: names, cwd: draft.text('cwd') }
}

function writeRemote(draft: Draft): PlainObject {
  const names = new Set<string>()
  const headers = draft.pairs('headers').map(([header, text]) => {
    const pieces = splitCanonical(text).map((piece) => {
      if (typeof piece === 'string') {
        if (/\$\{?[A-Za-z_]/.test(piece))
          draft.note(`headers.${header}`, 'Goose reads a part of this text as a variable')
        return piece
      }
      if (piece.fallback !== undefined) draft.note(`headers.${header}`, `Goose has no fallback for ${piece.name}`)
      names.add(piece.name)
      return toTemplate({ name: piece.name })
    })
    return [header, pieces.join('')]
  })
  const { url } = draft.remote()
  return { type: 'streamable_http', uri: url, headers: Object.fromEntries(headers), env_keys: [...names] }
}
