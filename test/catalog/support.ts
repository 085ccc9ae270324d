import { nameAlone, sharedSpace } from '../../src/catalog/name-table.ts'
import { toWanted, type WantedName } from '../../src/catalog/names.ts'
import { offeredTools } from '../../src/catalog/view.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import type { JudgedTool } from '../../src/definitions/definitions.ts'
import { matchesAny } from '../../src/lib/glob.ts'

/** What a server offers under the operator's choice. */
export function offer(judged: readonly JudgedTool[], choice: object = {}, more: object = {}) {
  const definition = ServerDefinition.parse({
    transport: 'stdio',
    command: 'x',
    trust: 'annotations',
    tools: choice,
    ...more,
  })
  const server = { name: 'files', scope: 'global', connection: 'files', definition, lineage: [] } as const
  const key = (tool: string, wanted: string) => ({ space: sharedSpace, server: 'files', tool, wanted })
  const { include, exclude } = definition.tools
  const chosen = judged.filter(({ name }) => matchesAny(include, name) && !matchesAny(exclude, name))
  const keys = chosen.map(({ name }) => key(name, toWanted(definition, name)))
  const nameIn = nameAlone('{server}_{tool}', keys)
  const nameOf = ({ tool, wanted }: WantedName) => nameIn(key(tool, wanted))
  return offeredTools(server, judged, { nameOf, describe: '{description}' })
}
