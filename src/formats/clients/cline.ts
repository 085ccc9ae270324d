import { clientTitles } from '../../contract/client.ts'
import { isPlainObject } from '../../documents/values.ts'
import { createEntry, type Entry } from '../entry.ts'
import type { Codec, Refusal, StatedServer } from '../format.ts'
import { plainNotation } from '../notation.ts'
import {
  approvalMessage,
  entriesAt,
  hasServers,
  leastTime,
  oauthMessage,
  readLocal,
  readRemote,
  readTime,
  someText,
} from '../read.ts'

/** `cline_mcp_settings.json`. The program for terminals writes the same settings into a nested `transport`. */
export const cline: Codec = {
  client: 'cline',
  title: clientTitles.cline,
  format: 'jsonc',
  notation: plainNotation,
  home: () => ['mcpServers'],
  likeness(document) {
    if (!hasServers(document, 'mcpServers')) return 0
    const entries = entriesAt(document, ['mcpServers'])
    if (entries.some((entry) => 'remoteConfigured' in entry || isPlainObject(entry.transport))) return 8
    if (entries.some(({ type }) => type === 'streamableHttp')) return 8
    // Pasted entries contain these fields in files of other programs too. Cline knows neither variables nor `http`.
    const isForeign = entries.some(({ type }) => type === 'http') || someText(entries, /\$\{/)
    return !isForeign && entries.some((entry) => 'autoApprove' in entry || 'alwaysAllow' in entry) ? 8 : 1
  },
  read(entry) {
    entry.leave(['autoApprove', 'alwaysAllow'], approvalMessage)
    entry.leave(['oauth'], oauthMessage)
    entry.ignore('remoteConfigured', 'metadata')
    const definition = readDefinition(entry)
    if ('refused' in definition) return definition
    const call = readTime(entry, 'timeout', { unit: 1000, least: leastTime.call })
    return {
      ...definition,
      enabled: entry.flag('disabled') === true ? false : undefined,
      timeout: call === undefined ? undefined : { call },
    }
  },
  write(draft) {
    const call = draft.time('timeout.call')
    const types = { http: 'streamableHttp', sse: 'sse', stdio: 'stdio' } as const
    return {
      type: types[draft.transport],
      ...(draft.transport === 'stdio' ? { ...draft.local(), cwd: draft.text('cwd') } : draft.remote()),
      disabled: draft.take('enabled') === false ? true : undefined,
      timeout: call === undefined ? undefined : call / 1000,
    }
  },
}

function readDefinition(entry: Entry): StatedServer | Refusal {
  const nested = entry.raw('transport')
  if (!isPlainObject(nested)) return readTransport(entry)
  const inside = createEntry(entry.key, nested, plainNotation)
  const definition = readTransport(inside)
  const { notes, needs } = inside.finish()
  for (const { field, message } of notes) entry.note(`transport.${field}`, message)
  for (const need of needs) entry.need(need)
  return definition
}

/** Without a type, an address is HTTP+SSE. */
function readTransport(entry: Entry): StatedServer | Refusal {
  const type = entry.text('type')
  if (type === 'streamableHttp' || type === 'http' || type === 'streamable-http')
    return readRemote(entry, { transport: 'http' })
  if (type === 'sse' || (type === undefined && entry.has('url'))) return readRemote(entry, { transport: 'sse' })
  return type === undefined || type === 'stdio' ? readLocal(entry) : { refused: 'has an unknown type' }
}
