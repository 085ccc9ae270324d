import { clientTitles } from '../../contract/client.ts'
import type { Codec } from '../format.ts'
import { editorNotation } from '../notation.ts'
import { entriesAt, envFileMessage, hasServers, oauthMessage, readLocal, readRemote, someText } from '../read.ts'

/** `.cursor/mcp.json`. */
export const cursor: Codec = {
  client: 'cursor',
  title: clientTitles.cursor,
  format: 'jsonc',
  notation: editorNotation(),
  home: () => ['mcpServers'],
  likeness(document) {
    if (!hasServers(document, 'mcpServers')) return 0
    const entries = entriesAt(document, ['mcpServers'])
    if (
      entries.some(({ auth, envFile }) => auth || envFile) ||
      someText(entries, /\$\{(env:|userHome|workspaceFolder)/)
    ) {
      return 6
    }
    return entries.some(({ url, type }) => url && !type) ? 4 : 1
  },
  read(entry) {
    const type = entry.text('type')
    entry.leave(['auth', 'oauth'], oauthMessage)
    entry.leave(['envFile'], envFileMessage)
    if (entry.has('command')) return readLocal(entry)
    return readRemote(entry, { transport: type === 'sse' ? 'sse' : 'http' })
  },
  write(draft) {
    if (draft.transport === 'stdio') return { type: 'stdio', ...draft.local() }
    return draft.transport === 'sse' ? { type: 'sse', ...draft.remote() } : draft.remote()
  },
}
