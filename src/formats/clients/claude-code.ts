import { clientTitles } from '../../contract/client.ts'
import { isPlainObject, valueAt } from '../../documents/values.ts'
import type { Codec, Reported } from '../format.ts'
import { shellNotation } from '../notation.ts'
import { entriesAt, hasServers, oauthMessage, readLocal, readRemote } from '../read.ts'

/** `.mcp.json` and `~/.claude.json`. */
export const claudeCode: Codec = {
  client: 'claude-code',
  title: clientTitles['claude-code'],
  format: 'jsonc',
  notation: shellNotation,
  home: (document) => (isBare(document) ? [] : ['mcpServers']),
  likeness(document) {
    if (isBare(document)) return 1
    if (!hasServers(document, 'mcpServers')) return 0
    return entriesAt(document, ['mcpServers']).some(({ type, headersHelper }) => type === 'http' || headersHelper)
      ? 5
      : 3
  },
  read(entry) {
    const type = entry.text('type')
    entry.leave(['oauth'], oauthMessage)
    entry.leave(['headersHelper'], 'is a command that makes headers, which Sallyport does not run; write the headers')
    if (type === 'http' || type === 'streamable-http') return readRemote(entry, { transport: 'http' })
    if (type === 'sse') return readRemote(entry, { transport: 'sse' })
    if (type === undefined || type === 'stdio') return readLocal(entry)
    return { refused: type === 'ws' ? 'uses WebSocket, which Sallyport does not support' : 'has an unknown type' }
  },
  report: reportProjects,
  write(draft) {
    if (draft.transport === 'stdio') return { type: 'stdio', ...draft.local() }
    return { type: draft.transport, ...draft.remote() }
  },
}

/** A plugin may leave out `mcpServers`. */
function isBare(document: unknown): boolean {
  if (!isPlainObject(document)) return false
  const entries = Object.values(document)
  return entries.length > 0 && entries.every((entry) => isPlainObject(entry) && ('command' in entry || 'url' in entry))
}

/** `~/.claude.json` also contains the servers that belong to one folder each. */
function reportProjects(document: unknown): Reported[] {
  const projects = valueAt(document, ['projects'])
  if (!isPlainObject(projects)) return []
  return Object.keys(projects).flatMap((folder) => {
    const servers = valueAt(projects, [folder, 'mcpServers'])
    if (!isPlainObject(servers) || Object.keys(servers).length === 0) return []
    const names = Object.keys(servers).join(', ')
    return [{ key: `projects.${folder}`, message: `has servers for this folder only, which are not read: ${names}` }]
  })
}
