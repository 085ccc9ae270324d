import { clientTitles } from '../../contract/client.ts'
import { valueAt } from '../../documents/values.ts'
import type { Codec } from '../format.ts'
import { geminiNotation } from '../notation.ts'
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

const signIn = ['oauth', 'authProviderType', 'targetAudience', 'targetServiceAccount']

/** `~/.gemini/settings.json`. */
export const geminiCli: Codec = {
  client: 'gemini-cli',
  title: clientTitles['gemini-cli'],
  format: 'jsonc',
  notation: geminiNotation,
  home: () => ['mcpServers'],
  likeness(document) {
    if (!hasServers(document, 'mcpServers')) return 0
    const entries = entriesAt(document, ['mcpServers'])
    const own = ['httpUrl', 'trust', 'includeTools', 'excludeTools', 'authProviderType']
    return entries.some((entry) => own.some((field) => field in entry)) ? 8 : 1
  },
  read(entry, document) {
    entry.leave(['trust'], approvalMessage)
    entry.leave(signIn, oauthMessage)
    const type = entry.text('type')
    const remote = () =>
      entry.has('httpUrl')
        ? readRemote(entry, { transport: 'http', url: 'httpUrl' })
        : readRemote(entry, { transport: type === 'http' ? 'http' : 'sse' })
    const definition = entry.has('command') ? readLocal(entry) : remote()
    if ('refused' in definition) return definition
    const [include, exclude] = [toToolGlobs(entry, 'includeTools'), toToolGlobs(entry, 'excludeTools')]
    const call = readTime(entry, 'timeout', { unit: 1, least: leastTime.call })
    return {
      ...definition,
      enabled: isOff(document, entry.key) ? false : undefined,
      description: entry.text('description'),
      tools: include || exclude ? { include, exclude } : undefined,
      timeout: call === undefined ? undefined : { call },
    }
  },
  write(draft) {
    const remote = () => draft.remote(draft.transport === 'http' ? 'httpUrl' : 'url')
    return {
      ...(draft.transport === 'stdio' ? { ...draft.local(), cwd: draft.text('cwd') } : remote()),
      description: draft.text('description'),
      timeout: draft.time('timeout.call'),
      includeTools: draft.toolNames('tools.include'),
      excludeTools: draft.toolNames('tools.exclude'),
    }
  },
}

/** `mcp.allowed` and `mcp.excluded` name servers. */
function isOff(document: unknown, key: string): boolean {
  const [allowed, excluded] = [valueAt(document, ['mcp', 'allowed']), valueAt(document, ['mcp', 'excluded'])]
  if (Array.isArray(excluded) && excluded.includes(key)) return true
  return Array.isArray(allowed) && !allowed.includes(key)
}
