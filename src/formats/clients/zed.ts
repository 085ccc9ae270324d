import { clientTitles } from '../../contract/client.ts'
import { isPlainObject } from '../../documents/values.ts'
import { createEntry } from '../entry.ts'
import type { Codec } from '../format.ts'
import { plainNotation } from '../notation.ts'
import { hasServers, leastTime, readLocal, readRemote, readTime } from '../read.ts'

/** `~/.config/zed/settings.json`. */
export const zed: Codec = {
  client: 'zed',
  title: clientTitles.zed,
  format: 'jsonc',
  notation: plainNotation,
  home: () => ['context_servers'],
  likeness: (document) => (hasServers(document, 'context_servers') ? 9 : 0),
  read(entry) {
    const source = entry.text('source')
    if (source === 'extension' || (entry.has('settings') && !entry.has('command') && !entry.has('url'))) {
      return { refused: 'is started by an extension of Zed, and the file does not contain its command' }
    }
    entry.leave(['settings'], 'is for an extension of Zed and is left out')
    entry.leave(['oauth'], 'describes a sign-in with OAuth in that program and is not taken over')
    entry.ignore('remote')
    const enabled = entry.flag('enabled') === false ? false : undefined
    const call = readTime(entry, 'timeout', { unit: 1000, least: leastTime.call })
    const timeout = call === undefined ? undefined : { call }
    if (entry.has('url')) {
      const definition = readRemote(entry, { transport: 'http' })
      return 'refused' in definition ? definition : { ...definition, enabled, timeout }
    }
    const older = isPlainObject(entry.raw('command')) ? entry.raw('command') : undefined
    if (!isPlainObject(older)) {
      const definition = readLocal(entry)
      return 'refused' in definition ? definition : { ...definition, enabled, timeout }
    }
    const inside = createEntry(entry.key, older, plainNotation)
    const definition = readLocal(inside, { command: 'path' })
    for (const { field, message } of inside.finish().notes) entry.note(`command.${field}`, message)
    return 'refused' in definition ? definition : { ...definition, enabled, timeout }
  },
  write(draft) {
    if (draft.transport === 'sse') draft.note('transport', 'Zed uses Streamable HTTP for every address')
    const enabled = draft.take('enabled') === false ? false : undefined
    return { ...(draft.transport === 'stdio' ? { source: 'custom', ...draft.local() } : draft.remote()), enabled }
  },
}
