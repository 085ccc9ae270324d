import { clientTitles } from '../../contract/client.ts'
import { isPlainObject, type PlainObject } from '../../documents/values.ts'
import type { Draft } from '../draft.ts'
import type { Entry } from '../entry.ts'
import type { Codec, StatedServer } from '../format.ts'
import { keepVariableName, type Piece, plainNotation, splitCanonical, toTemplate, toVariableName } from '../notation.ts'
import {
  approvalMessage,
  entriesAt,
  hasServers,
  leastTime,
  oauthMessage,
  readLocal,
  readRemote,
  readTime,
  toToolGlobs,
} from '../read.ts'

const approvals = ['default_tools_approval_mode', 'tools', 'supports_parallel_tool_calls', 'omit_tools_from'] as const

/** `~/.codex/config.toml`. Codex has names of environment variables where other programs have templates. */
export const codex: Codec = {
  client: 'codex',
  title: clientTitles.codex,
  format: 'toml',
  notation: plainNotation,
  home: () => ['mcp_servers'],
  likeness(document) {
    if (!hasServers(document, 'mcp_servers')) return 0
    const entries = entriesAt(document, ['mcp_servers'])
    if (entries.some(({ type, command }) => type !== undefined || Array.isArray(command))) return 0
    return entries.some(({ command, url }) => command || url) ? 6 : 0
  },
  read(entry) {
    entry.leave([approvals[0], approvals[1]], approvalMessage)
    entry.leave([approvals[2], approvals[3], 'required'], 'is a setting of Codex only and is left out')
    entry.leave(['auth', 'scopes', 'oauth', 'oauth_resource'], oauthMessage)
    entry.leave(
      ['http_headers_helper'],
      'is a command that makes headers, which Sallyport does not run; write the headers',
    )
    const definition = entry.has('url')
      ? readRemote(entry, { transport: 'http', headers: 'http_headers' })
      : readLocal(entry)
    if ('refused' in definition) return definition
    const whole = entry.has('url') ? withHeaderNames(entry, definition) : withVariableNames(entry, definition)
    const [include, exclude] = [toToolGlobs(entry, 'enabled_tools'), toToolGlobs(entry, 'disabled_tools')]
    const connect = readTime(entry, 'startup_timeout_sec', { unit: 1000, least: leastTime.connect })
    const call = readTime(entry, 'tool_timeout_sec', { unit: 1000, least: leastTime.call })
    return {
      ...whole,
      enabled: entry.flag('enabled') === false ? false : undefined,
      tools: include || exclude ? { include, exclude } : undefined,
      timeout: connect === undefined && call === undefined ? undefined : { connect, call },
    }
  },
  write(draft) {
    if (draft.transport === 'sse') return { refused: 'uses HTTP+SSE, and Codex has only Streamable HTTP' }
    const [connect, call] = [draft.time('timeout.connect'), draft.time('timeout.call')]
    return {
      ...(draft.transport === 'stdio' ? writeLocal(draft) : writeRemote(draft)),
      enabled: draft.take('enabled') === false ? false : undefined,
      enabled_tools: draft.toolNames('tools.include'),
      disabled_tools: draft.toolNames('tools.exclude'),
      startup_timeout_sec: connect === undefined ? undefined : connect / 1000,
      tool_timeout_sec: call === undefined ? undefined : call / 1000,
    }
  },
  // Codex refuses other names.
  toKey: (name) => name.replace(/[^A-Za-z0-9_-]/g, '_'),
}

function withVariableNames(entry: Entry, definition: StatedServer): StatedServer {
  const listed = entry.raw('env_vars')
  if (!Array.isArray(listed)) return definition
  const names = listed
    .map((item: unknown) => (isPlainObject(item) ? item.name : item))
    .filter((name) => typeof name === 'string')
  const variables = names.map((name) => [name, toTemplate({ name: keepVariableName(name) })])
  return { ...definition, env: { ...Object.fromEntries(variables), ...definition.env } }
}

function withHeaderNames(entry: Entry, definition: StatedServer): StatedServer {
  const bearer = entry.text('bearer_token_env_var')
  const named = Object.entries(entry.record('env_http_headers') ?? {})
  const headers = {
    ...definition.headers,
    ...(bearer === undefined ? {} : { Authorization: `Bearer ${toTemplate({ name: keepVariableName(bearer) })}` }),
    ...Object.fromEntries(named.map(([header, name]) => [header, toTemplate({ name: keepVariableName(name) })])),
  }
  return { ...definition, headers: Object.keys(headers).length === 0 ? undefined : headers }
}

function writeLocal(draft: Draft): PlainObject {
  const names: string[] = []
  const env: Record<string, string> = {}
  for (const [name, text] of draft.pairs('env')) {
    const pieces = splitCanonical(text)
    if (pieces.every((piece) => typeof piece === 'string')) {
      env[name] = draft.fill(`env.${name}`, text)
      continue
    }
    names.push(name)
    if (text !== `\${${name}}`)
      draft.note(`env.${name}`, `Codex passes ${name} on from its own environment: set ${name} there`)
  }
  const { command, args } = draft.local()
  return {
    command,
    args: args.length === 0 ? undefined : args,
    env: Object.keys(env).length === 0 ? undefined : env,
    env_vars: names.length === 0 ? undefined : names,
    cwd: draft.text('cwd'),
  }
}

function writeRemote(draft: Draft): PlainObject {
  const texts: Record<string, string> = {}
  const names: Record<string, string> = {}
  let bearer: string | undefined
  for (const [header, text] of draft.pairs('headers')) {
    const pieces = splitCanonical(text)
    const variable = onlyVariable(pieces)
    const token = onlyVariable(pieces.slice(1))
    if (pieces.every((piece) => typeof piece === 'string')) texts[header] = draft.fill(`headers.${header}`, text)
    else if (header === 'Authorization' && pieces[0] === 'Bearer ' && token !== undefined) bearer = token
    else if (variable !== undefined) names[header] = variable
    else {
      names[header] = toVariableName(header)
      draft.note(`headers.${header}`, `Codex needs the whole value in one variable: set ${names[header]} to it`)
    }
  }
  const { url } = draft.remote()
  return {
    url,
    bearer_token_env_var: bearer,
    http_headers: Object.keys(texts).length === 0 ? undefined : texts,
    env_http_headers: Object.keys(names).length === 0 ? undefined : names,
  }
}

/** The name, if these pieces are one variable without a fallback. */
function onlyVariable(pieces: readonly Piece[]): string | undefined {
  const [piece] = pieces
  return pieces.length === 1 && typeof piece === 'object' && piece.fallback === undefined ? piece.name : undefined
}
