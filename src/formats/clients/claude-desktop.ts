import { clientTitles } from '../../contract/client.ts'
import type { Codec } from '../format.ts'
import { plainNotation } from '../notation.ts'
import { hasServers, readLocal } from '../read.ts'

/** `claude_desktop_config.json`. */
export const claudeDesktop: Codec = {
  client: 'claude-desktop',
  title: clientTitles['claude-desktop'],
  format: 'jsonc',
  notation: plainNotation,
  home: () => ['mcpServers'],
  // Its entries cannot be told from those of Claude Code.
  likeness: (document) => (hasServers(document, 'mcpServers') ? 1 : 0),
  read(entry) {
    if (entry.has('url') && !entry.has('command')) {
      return { refused: 'has an address, which Claude Desktop does not support: add the server with its address' }
    }
    entry.ignore('type')
    return readLocal(entry)
  },
  write(draft) {
    if (draft.transport === 'stdio') return draft.local()
    return { refused: 'has an address, and Claude Desktop starts only commands from its file' }
  },
}
