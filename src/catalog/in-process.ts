import type { JudgedTool } from '../definitions/definitions.ts'
import type { InProcessServer, InProcessTool } from '../servers/servers.ts'
import type { ToolRef } from './view.ts'

/** The tools of the gateway's own server, for every view. They are part of Sallyport, so they are not checked or pinned. */
export function toToolRefs({ name: server, tools }: InProcessServer): ToolRef[] {
  return tools.map((tool) => ({
    name: tool.name,
    publicName: tool.name,
    description: tool.description,
    server,
    scope: 'global',
    connection: server,
    risk: tool.risk,
    riskFrom: 'override',
    definition: toDefinition(tool),
    hash: '',
    drifted: undefined,
    inProcess: tool,
  }))
}

function toDefinition({ name, title, description, inputSchema, risk }: InProcessTool): JudgedTool {
  const reads = risk === 'read'
  return {
    name,
    title,
    description,
    inputSchema,
    outputSchema: undefined,
    annotations: {
      readOnlyHint: reads,
      destructiveHint: risk === 'danger',
      idempotentHint: reads,
      openWorldHint: false,
    },
    mirrors: [],
    rest: {},
    mended: undefined,
    hash: '',
    steering: undefined,
    mentions: [],
  }
}
