import { offeredTools } from '../../src/catalog/view.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import type { JudgedTool } from '../../src/definitions/definitions.ts'

const patterns = { naming: '{server}_{tool}', describe: '{description}' }

/** What a server offers under the operator's choice. */
export function offer(judged: readonly JudgedTool[], choice: object = {}, more: object = {}) {
  const definition = ServerDefinition.parse({
    transport: 'stdio',
    command: 'x',
    trust: 'annotations',
    tools: choice,
    ...more,
  })
  const server = { name: 'files', scope: 'global', connection: 'files', definition } as const
  return offeredTools(server, judged, patterns)
}
