import { clientTitles } from '../../contract/client.ts'
import type { Codec } from '../format.ts'
import { editorNotation } from '../notation.ts'
import { approvalMessage, entriesAt, hasServers, readLocal, readRemote, toToolGlobs } from '../read.ts'

/** `~/.codeium/windsurf/mcp_config.json`. */
export const windsurf: Codec = {
  client: 'windsurf',
  title: clientTitles.windsurf,
  format: 'jsonc',
  notation: editorNotation(),
  home: () => ['mcpServers'],
  likeness(document) {
    if (!hasServers(document, 'mcpServers')) return 0
    return entriesAt(document, ['mcpServers']).some((entry) => 'serverUrl' in entry || 'disabledTools' in entry) ? 9 : 1
  },
  read(entry) {
    entry.leave(['alwaysAllow', 'autoApprove'], approvalMessage)
    entry.ignore('type')
    const url = entry.has('serverUrl') ? 'serverUrl' : 'url'
    const definition = entry.has('command') ? readLocal(entry) : readRemote(entry, { transport: 'http', url })
    if ('refused' in definition) return definition
    if (url === 'url' && entry.has('url'))
      entry.note('url', 'does not connect in Windsurf, which uses serverUrl; it is used here')
    const exclude = toToolGlobs(entry, 'disabledTools')
    return {
      ...definition,
      enabled: entry.flag('disabled') === true ? false : undefined,
      tools: exclude === undefined || exclude.length === 0 ? undefined : { exclude },
    }
  },
  write(draft) {
    if (draft.transport === 'sse') draft.note('transport', 'Windsurf finds out whether an address is HTTP+SSE')
    return {
      ...(draft.transport === 'stdio' ? draft.local() : draft.remote('serverUrl')),
      disabled: draft.take('enabled') === false ? true : undefined,
      disabledTools: draft.toolNames('tools.exclude'),
    }
  },
}
