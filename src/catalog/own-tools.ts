import type { JudgedTool } from './judge.ts'
import type { ToolRef } from './view.ts'

/** The gateway itself, where a server's name or connection stands otherwise; no server can be called so. */
export const ownServer = 'sallyport'
export const readResultName = 'sallyport_read_result'

const readResult: JudgedTool = {
  name: readResultName,
  title: 'Read the rest of a result',
  description:
    'Reads on in a result that Sallyport cut because it was too long. The end of such a result names the handle and the offset to go on from.',
  inputSchema: {
    type: 'object',
    properties: {
      handle: { type: 'string', description: 'The handle that the cut result names' },
      offset: { type: 'integer', minimum: 0, default: 0, description: 'Characters to skip from the beginning' },
      length: { type: 'integer', minimum: 1, description: 'Most characters to give; as many as fit without it' },
    },
    required: ['handle'],
    additionalProperties: false,
  },
  outputSchema: undefined,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  mirrors: [],
  rest: {},
  mended: undefined,
  hash: '',
  steering: undefined,
  mentions: [],
}

/** What the gateway offers by itself, decided and recorded like any other tool. */
export const ownTools: readonly ToolRef[] = [readResult].map((definition) => ({
  name: definition.name,
  publicName: definition.name,
  description: definition.description,
  server: ownServer,
  scope: 'global',
  connection: ownServer,
  risk: 'read',
  riskFrom: 'override',
  definition,
  hash: definition.hash,
  drifted: undefined,
}))
