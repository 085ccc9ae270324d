import { clientTitles } from '../../contract/client.ts'
import { isPlainObject } from '../../documents/values.ts'
import type { Entry } from '../entry.ts'
import type { Codec, Refusal, StatedServer } from '../format.ts'
import { keepVariableName, libreChatNotation } from '../notation.ts'
import { entriesAt, hasServers, leastTime, oauthMessage, readLocal, readRemote, readTime, readTitle } from '../read.ts'

const signIn = ['oauth', 'oauth_headers', 'requiresOAuth', 'obo']
const display = ['startup', 'chatMenu', 'serverInstructions', 'iconPath', 'stderr']

/** `librechat.yaml`. */
export const libreChat: Codec = {
  client: 'librechat',
  title: clientTitles.librechat,
  format: 'yaml',
  notation: libreChatNotation,
  home: () => ['mcpServers'],
  likeness(document) {
    if (!hasServers(document, 'mcpServers')) return 0
    const own = [...display, 'requiresOAuth', 'customUserVars', 'apiKey']
    const entries = entriesAt(document, ['mcpServers'])
    if (
      entries.some(
        (entry) => own.some((field) => field in entry) || /^(streamable-http|websocket)$/.test(String(entry.type)),
      )
    ) {
      return 7
    }
    return isPlainObject(document) && 'endpoints' in document ? 7 : 1
  },
  read(entry) {
    const definition = readDefinition(entry)
    if ('refused' in definition) return definition
    const connect = readTime(entry, 'initTimeout', { unit: 1, least: leastTime.connect })
    const call = readTime(entry, 'timeout', { unit: 1, least: leastTime.call })
    entry.leave(signIn, oauthMessage)
    entry.leave(display, 'is a setting of LibreChat only and is left out')
    entry.leave(['proxy'], 'names a proxy; Sallyport uses its own proxy settings')
    return {
      ...definition,
      title: readTitle(entry, 'title'),
      description: entry.text('description'),
      timeout: connect === undefined && call === undefined ? undefined : { connect, call },
    }
  },
  write(draft) {
    const types = { http: 'streamable-http', sse: 'sse', stdio: 'stdio' } as const
    return {
      type: types[draft.transport],
      ...(draft.transport === 'stdio' ? { ...draft.local(), cwd: draft.text('cwd') } : draft.remote()),
      title: draft.text('title'),
      description: draft.text('description'),
      initTimeout: draft.time('timeout.connect'),
      timeout: draft.time('timeout.call'),
    }
  },
}

function readDefinition(entry: Entry): StatedServer | Refusal {
  describeUserVariables(entry)
  const type = entry.text('type')
  if (type === 'websocket') return { refused: 'uses WebSocket, which Sallyport does not support' }
  if (type === 'streamable-http' || type === 'http') return withKey(entry, readRemote(entry, { transport: 'http' }))
  // Without a type, an address is HTTP+SSE.
  if (type === 'sse' || (type === undefined && entry.has('url')))
    return withKey(entry, readRemote(entry, { transport: 'sse' }))
  return type === undefined || type === 'stdio' ? readLocal(entry) : { refused: 'has an unknown type' }
}

/** Each user of LibreChat has an own value for these. */
function describeUserVariables(entry: Entry): void {
  const variables = entry.raw('customUserVars')
  if (!isPlainObject(variables)) return
  for (const [name, about] of Object.entries(variables)) {
    const description = isPlainObject(about) && typeof about.title === 'string' ? about.title : undefined
    entry.need({ name: keepVariableName(name), secret: true, description })
  }
}

function withKey(entry: Entry, definition: StatedServer | Refusal): StatedServer | Refusal {
  entry.leave(
    ['apiKey'],
    'describes a key that LibreChat stores; write a header with ${NAME} and store the key as a secret',
  )
  return definition
}
