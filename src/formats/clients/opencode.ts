import { clientTitles } from '../../contract/client.ts'
import { Timeouts } from '../../contract/server.ts'
import { isPlainObject, type PlainObject, valueAt } from '../../documents/values.ts'
import type { Draft } from '../draft.ts'
import { createEntry, type Entry } from '../entry.ts'
import type { Codec, Refusal, StatedServer } from '../format.ts'
import { openCodeNotation } from '../notation.ts'
import { entriesAt, leastTime, oauthMessage, readFolder, readRemote, readTime } from '../read.ts'

/** `opencode.json`. Version 1 has the servers in `mcp`, version 2 in `mcp.servers`. */
export const opencode: Codec = {
  client: 'opencode',
  title: clientTitles.opencode,
  format: 'jsonc',
  notation: openCodeNotation,
  home: (document) => (isSecond(document) ? ['mcp', 'servers'] : ['mcp']),
  likeness(document) {
    const entries = entriesAt(document, isSecond(document) ? ['mcp', 'servers'] : ['mcp'])
    return entries.some(({ type }) => type === 'local' || type === 'remote') ? 9 : 0
  },
  read(entry, document) {
    const definition = readDefinition(entry)
    if ('refused' in definition) return definition
    const disabled = entry.flag('disabled')
    const enabled = entry.flag('enabled')
    return {
      ...definition,
      enabled: isSecond(document) ? disabled && false : enabled === false ? false : undefined,
      timeout: readTimes(entry),
    }
  },
  write(draft, document) {
    const second = isSecond(document)
    const enabled = draft.take('enabled') !== false
    const state = enabled ? {} : second ? { disabled: true } : { enabled: false }
    return { ...writeDefinition(draft), ...state, timeout: writeTimes(draft, second) }
  },
}

/** A document without servers is written as version 1, which both versions read. */
function isSecond(document: unknown): boolean {
  const servers = valueAt(document, ['mcp', 'servers'])
  return isPlainObject(servers) && typeof servers.type !== 'string'
}

function readDefinition(entry: Entry): StatedServer | Refusal {
  const type = entry.text('type')
  if (type === 'remote') {
    if (entry.raw('oauth') !== undefined && entry.raw('oauth') !== false) entry.note('oauth', oauthMessage)
    return readRemote(entry, { transport: 'http' })
  }
  if (type !== 'local') return { refused: type === undefined ? 'type is missing' : 'has an unknown type' }
  const [command, ...args] = entry.templates('command') ?? []
  if (command === undefined || command === '') return { refused: 'command is not a list of texts' }
  return { transport: 'stdio', command, args, env: entry.templateRecord('environment'), cwd: readFolder(entry, 'cwd') }
}

/** Version 2 has two limits, version 1 one. */
function readTimes(entry: Entry): StatedServer['timeout'] {
  const value = entry.raw('timeout')
  if (!isPlainObject(value)) return toTimes({ call: readTime(entry, 'timeout', { unit: 1, least: leastTime.call }) })
  const times = createEntry(entry.key, value, openCodeNotation)
  const connect = readTime(times, 'startup', { unit: 1, least: leastTime.connect })
  const call = readTime(times, 'request', { unit: 1, least: leastTime.call })
  for (const { field, message } of times.finish().notes) entry.note(`timeout.${field}`, message)
  return toTimes({ connect, call })
}

function toTimes(times: { connect?: number | undefined; call?: number | undefined }): StatedServer['timeout'] {
  return times.connect === undefined && times.call === undefined ? undefined : times
}

function writeDefinition(draft: Draft): PlainObject {
  // Without `oauth: false` OpenCode looks for a sign-in when the server refuses the header.
  if (draft.transport !== 'stdio') {
    if (draft.transport === 'sse') draft.note('transport', 'OpenCode tries Streamable HTTP first, then HTTP+SSE')
    const remote = draft.remote()
    return { type: 'remote', ...remote, ...('headers' in remote ? { oauth: false } : {}) }
  }
  const { command, args, env } = draft.local()
  return { type: 'local', command: [command, ...args], cwd: draft.text('cwd'), environment: env }
}

/** Always written, because version 1 gives a call 5 seconds otherwise. */
function writeTimes(draft: Draft, second: boolean): unknown {
  const usual = Timeouts.parse({})
  const call = draft.time('timeout.call') ?? usual.call
  return second ? { startup: draft.time('timeout.connect') ?? usual.connect, request: call } : call
}
