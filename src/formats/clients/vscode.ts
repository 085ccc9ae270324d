import { clientTitles } from '../../contract/client.ts'
import { isPlainObject, valueAt } from '../../documents/values.ts'
import type { Codec } from '../format.ts'
import { editorNotation, type Inputs } from '../notation.ts'
import { entriesAt, envFileMessage, hasServers, oauthMessage, readLocal, readRemote, sandboxMessage } from '../read.ts'

/** `.vscode/mcp.json` and `mcp.json` of the user. */
export const vscode: Codec = {
  client: 'vscode',
  title: clientTitles.vscode,
  format: 'jsonc',
  notation: editorNotation(),
  notationOf: (document) => editorNotation(readInputs(document)),
  home: () => ['servers'],
  likeness(document) {
    if (!hasServers(document, 'servers')) return 0
    if (Array.isArray(valueAt(document, ['inputs']))) return 8
    const entries = entriesAt(document, ['servers'])
    return entries.length > 0 && entries.every(({ command, url }) => command || url) ? 5 : 0
  },
  read(entry) {
    const type = entry.text('type')
    entry.leave(['envFile'], envFileMessage)
    entry.leave(['sandboxEnabled', 'sandbox'], sandboxMessage)
    entry.leave(['dev'], 'is for the development of a server in VS Code and is left out')
    entry.leave(['oauth'], oauthMessage)
    entry.ignore('gallery', 'version')
    if (type === 'sse') return readRemote(entry, { transport: 'sse' })
    if (type === 'http' || (type === undefined && !entry.has('command')))
      return readRemote(entry, { transport: 'http' })
    return type === undefined || type === 'stdio' ? readLocal(entry) : { refused: 'has an unknown type' }
  },
  write(draft) {
    if (draft.transport !== 'stdio') return { type: draft.transport, ...draft.remote() }
    return { type: 'stdio', ...draft.local(), cwd: draft.text('cwd') }
  },
}

/** What VS Code asks the person for, by id. */
function readInputs(document: unknown): Inputs {
  const inputs = valueAt(document, ['inputs'])
  if (!Array.isArray(inputs)) return new Map()
  return new Map(
    inputs
      .filter(isPlainObject)
      .map(({ id, description, password }) => [
        String(id),
        { secret: password === true, description: typeof description === 'string' ? description : undefined },
      ]),
  )
}
