import type { JsonObject } from '../contract/json.ts'
import type { JudgedTool } from '../definitions/definitions.ts'
import type { ToolRef } from './view.ts'

/** The gateway itself, where a server's name or connection stands otherwise; no server can be called so. */
export const ownServer = 'sallyport'
export const readResultName = 'sallyport_read_result'
export const approvalStatusName = 'sallyport_approval_status'
export const waitForApprovalName = 'sallyport_wait_for_approval'
/** Seconds: an agent's program gives up on a call that says nothing for longer. */
export const approvalWait = { most: 60, usual: 25 } as const

type Described = { name: string; title: string; description: string; properties: JsonObject; required: string[] }

const approvalId = { type: 'string', description: 'The id of the approval that the waiting call named' }

const definitions: readonly JudgedTool[] = [
  define({
    name: readResultName,
    title: 'Read the rest of a result',
    description:
      'Reads on in a result that Sallyport cut because it was too long. The end of such a result names the handle and the offset to go on from.',
    properties: {
      handle: { type: 'string', description: 'The handle that the cut result names' },
      offset: { type: 'integer', minimum: 0, default: 0, description: 'Characters to skip from the beginning' },
      length: { type: 'integer', minimum: 1, description: 'Most characters to give; as many as fit without it' },
    },
    required: ['handle'],
  }),
  define({
    name: approvalStatusName,
    title: 'How an approval stands',
    description:
      'Tells whether a person has answered about a call of yours that Sallyport holds back, with the reason of a denial, and what to do next.',
    properties: { id: approvalId },
    required: ['id'],
  }),
  define({
    name: waitForApprovalName,
    title: 'Wait for an approval',
    description:
      'Waits until a person has answered about a call of yours that Sallyport holds back, or until the time is up, and tells what to do next. It runs nothing: once approved, repeat the same call.',
    properties: {
      id: approvalId,
      seconds: {
        type: 'number',
        minimum: 0,
        maximum: approvalWait.most,
        default: approvalWait.usual,
        description: 'Seconds to wait at most',
      },
    },
    required: ['id'],
  }),
]

/** What the gateway offers by itself, decided and recorded like any other tool. */
export const ownTools: readonly ToolRef[] = definitions.map((definition) => ({
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

function define({ name, title, description, properties, required }: Described): JudgedTool {
  return {
    name,
    title,
    description,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    outputSchema: undefined,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    mirrors: [],
    rest: {},
    mended: undefined,
    hash: '',
    steering: undefined,
    mentions: [],
  }
}
