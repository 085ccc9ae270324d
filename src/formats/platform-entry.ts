import { z } from 'zod'
import { ServerPatch, Timeouts } from '../contract/server.ts'
import { isPlainObject, type PlainObject } from '../documents/values.ts'
import { createEntry, type Entry } from './entry.ts'
import type { FoundServer, Refusal, StatedServer } from './format.ts'
import { shellNotation } from './notation.ts'
import { approvalMessage, leastTime, oauthMessage, readFolder, readLocal, readRemote, toToolGlobs } from './read.ts'

/** A server of a platform's configuration. `agent` is set if only this agent has the server. */
export type PlatformServer = FoundServer & { readonly agent?: string | undefined }

/** The words for each field. The issue of a platform uses one of them; the others are read too, with a note. */
const spellings = {
  transport: ['transport', 'type', 'kind'],
  command: ['command', 'cmd'],
  args: ['args', 'arguments'],
  env: ['env', 'environment', 'envs'],
  cwd: ['cwd', 'working_directory', 'workingDirectory'],
  url: ['url', 'endpoint', 'uri', 'server_url', 'serverUrl', 'httpUrl', 'base_url', 'baseUrl'],
  headers: ['headers', 'http_headers', 'httpHeaders'],
  title: ['title', 'display_name', 'displayName', 'label'],
  include: ['allowedTools', 'allowed_tools', 'tool_allowlist', 'toolAllowlist', 'includeTools', 'enabled_tools'],
  exclude: ['disabledTools', 'disabled_tools', 'excludeTools', 'blockedTools', 'blocked_tools', 'tool_denylist'],
} as const
export type Field = keyof typeof spellings

const approvals = [
  'autoApprove',
  'auto_approve',
  'alwaysAllow',
  'always_allow',
  'autoAllow',
  'approvedTools',
  'approved_tools',
  'requireApproval',
  'require_approval',
  'trust',
  'trusted',
  'permissions',
]
const signIn = ['oauth', 'requiresOAuth', 'requires_oauth', 'oauth_scopes']

/** `usual`: the words that this platform uses. Other words get a note. */
export function readPlatformEntry(key: string, fields: PlainObject, usual: readonly string[]): FoundServer | Refusal {
  const entry = createEntry(key, fields, shellNotation)
  const found = readDefinition(entry, fields, usual)
  return 'refused' in found ? found : toFoundServer(entry, found)
}

/** The entry as a server, without empty fields. */
export function toFoundServer(entry: Entry, definition: StatedServer): FoundServer {
  const stated = Object.entries(definition).filter(([, value]) => value !== undefined && !isEmptyMap(value))
  return {
    key: entry.key,
    definition: { ...Object.fromEntries(stated), transport: definition.transport },
    ...entry.finish(),
  }
}

function isEmptyMap(value: unknown): boolean {
  return isPlainObject(value) && Object.keys(value).length === 0
}

function readDefinition(entry: Entry, fields: PlainObject, usual: readonly string[]): StatedServer | Refusal {
  const word = (field: Field) => findWord(entry, field, usual)
  entry.leave(approvals, approvalMessage)
  entry.leave(signIn, oauthMessage)
  const transport = readTransport(entry, word)
  if (typeof transport !== 'string') return transport
  const reached = transport === 'stdio' ? readCommand(entry, fields, word) : readAddress(entry, transport, word)
  return 'refused' in reached ? reached : { ...reached, ...readCommon(entry, word) }
}

/** The settings that do not depend on the transport. */
export function readCommon(entry: Entry, word: WordOf): Partial<StatedServer> {
  const include = readTools(entry, word('include'))
  const exclude = readTools(entry, word('exclude'))
  const tools = {
    ...readChoice(entry),
    ...(include && !include.includes('*') && { include }),
    ...(exclude && { exclude }),
  }
  entry.leave(ownSettings, 'decides about calls and is not imported: set it here')
  const title = word('title')
  return {
    title: title === undefined ? undefined : entry.text(title),
    description: entry.text('description'),
    enabled: readEnabled(entry),
    ...(Object.keys(tools).length > 0 && { tools }),
    timeout: readTimeout(entry),
  }
}

const ownSettings = ['defaultRisk', 'pinning', 'limits', 'secretsInArguments']

const Choice = z.object({ include: z.array(z.string()).optional(), exclude: z.array(z.string()).optional() })

/** `tools: { include: [], exclude: [] }`, as in Sallyport's own file. */
function readChoice(entry: Entry): { include?: string[]; exclude?: string[] } {
  const raw = entry.raw('tools')
  if (raw === undefined || raw === null) return {}
  const choice = Choice.safeParse(raw)
  if (!choice.success || !isPlainObject(raw)) {
    entry.note('tools', 'is not understood and is left out')
    return {}
  }
  const others = Object.keys(raw).filter((key) => key !== 'include' && key !== 'exclude')
  for (const key of others) entry.note(`tools.${key}`, 'is not imported: set it here')
  const { include, exclude } = choice.data
  return { ...(include && { include }), ...(exclude && { exclude }) }
}

export type WordOf = (field: Field) => string | undefined

/** The word that the entry uses for a field. */
export function findWord(entry: Entry, field: Field, usual: readonly string[]): string | undefined {
  const [word, ...others] = spellings[field].filter((name) => entry.has(name))
  if (word === undefined) return undefined
  if (!usual.includes(word)) entry.note(word, `was read as ${toWords(field)}`)
  entry.leave(others, `is a second spelling of ${word} and is left out`)
  return word
}

function toWords(field: Field): string {
  if (field === 'include') return 'the tools that are offered'
  return field === 'exclude' ? 'the tools that are not offered' : field
}

const transports: Readonly<Record<string, StatedServer['transport']>> = {
  stdio: 'stdio',
  local: 'stdio',
  command: 'stdio',
  http: 'http',
  https: 'http',
  remote: 'http',
  remotehttp: 'http',
  streamable: 'http',
  streamablehttp: 'http',
  httpstream: 'http',
  sse: 'sse',
  httpsse: 'sse',
  remotesse: 'sse',
}
const certain: readonly string[] = ['stdio', 'local', 'http', 'streamable-http', 'sse', 'remote_http']

/** The transport that a word of a platform stands for. */
export function toTransport(word: string): StatedServer['transport'] | undefined {
  const plain = word.toLowerCase().replace(/[^a-z]/g, '')
  return Object.hasOwn(transports, plain) ? transports[plain] : undefined
}

export function readTransport(entry: Entry, wordOf: WordOf): StatedServer['transport'] | Refusal {
  const word = wordOf('transport')
  const text = word === undefined ? undefined : entry.text(word)
  if (word !== undefined && text !== undefined) {
    const transport = toTransport(text)
    if (transport === undefined) return { refused: `${word} is not stdio, http or sse` }
    if (!certain.includes(text)) entry.note(word, `was understood as ${transport}`)
    return transport
  }
  const transport = spellings.command.some((name) => entry.has(name)) ? 'stdio' : 'http'
  entry.note('transport', `is missing and was understood as ${transport}`)
  return transport
}

/** Some platforms write the program and its arguments as one list. */
function readCommand(entry: Entry, fields: PlainObject, word: WordOf): StatedServer | Refusal {
  const command = word('command')
  const list = command === undefined ? undefined : fields[command]
  const env = word('env')
  const cwd = word('cwd')
  if (command === undefined || !Array.isArray(list)) {
    return readLocal(entry, { command: command ?? 'command', args: word('args') ?? 'args', env, cwd })
  }
  const [program, ...first] = entry.templates(command) ?? []
  if (program === undefined || program.trim() === '') return { refused: `${command} is not a list of texts` }
  const args = word('args')
  const more = args === undefined ? [] : (entry.templates(args) ?? [])
  return {
    transport: 'stdio',
    command: program,
    ...(first.length + more.length > 0 && { args: [...first, ...more] }),
    env: env === undefined ? undefined : entry.templateRecord(env),
    cwd: readFolder(entry, cwd ?? 'cwd'),
  }
}

function readAddress(entry: Entry, transport: 'http' | 'sse', word: WordOf): StatedServer | Refusal {
  entry.leave(spellings.env, 'is a setting of commands; a server at an address has none')
  const address = readRemote(entry, { transport, url: word('url') ?? 'url', headers: word('headers') ?? 'headers' })
  return address
}

/** An empty list allows nothing; no list allows everything. */
function readTools(entry: Entry, field: string | undefined): string[] | undefined {
  if (field === undefined) return undefined
  const globs = toToolGlobs(entry, field)
  if (globs === undefined) return undefined
  const isAllow = (spellings.include as readonly string[]).includes(field)
  if (isAllow && globs.length === 0) entry.note(field, 'is empty, so no tool is offered')
  else if (isAllow && !globs.includes('*'))
    entry.note(field, 'chooses the tools that are offered. It allows no call: Sallyport has its own rules')
  return globs
}

function readEnabled(entry: Entry): boolean | undefined {
  const [enabled, disabled] = [entry.flag('enabled'), entry.flag('disabled')]
  if (enabled !== undefined && disabled !== undefined && enabled === disabled)
    entry.note('disabled', 'contradicts enabled and is left out')
  return enabled ?? (disabled === undefined ? undefined : !disabled)
}

const PartialTimeout = ServerPatch.shape.timeout
const seconds = ['timeout_seconds', 'timeout_sec', 'tool_timeout_sec', 'timeoutSeconds']
const milliseconds = ['timeout_ms', 'timeoutMs']

/** `timeout` alone has no unit: some programs mean seconds and some milliseconds. */
function readTimeout(entry: Entry): StatedServer['timeout'] {
  for (const [fields, unit] of [[seconds, 1000] as const, [milliseconds, 1] as const]) {
    const field = fields.find((name) => entry.has(name))
    const value = field === undefined ? undefined : entry.number(field)
    const call = value === undefined ? undefined : Math.round(value * unit)
    if (call !== undefined && Timeouts.shape.call.safeParse(call).success && call >= leastTime.call) return { call }
  }
  if (!entry.has('timeout')) return undefined
  const whole = PartialTimeout.safeParse(entry.raw('timeout'))
  if (whole.success) return whole.data
  const isNumber = z.number().safeParse(entry.raw('timeout')).success
  entry.note('timeout', isNumber ? 'has no unit and is left out' : 'is not understood and is left out')
  return undefined
}
