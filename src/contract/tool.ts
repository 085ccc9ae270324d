import { z } from 'zod'
import { PinState } from './pin.ts'
import { Risk } from './risk.ts'

export const ToolAnnotations = z.looseObject({
  title: z.string().optional(),
  readOnlyHint: z.boolean().optional(),
  destructiveHint: z.boolean().optional(),
  idempotentHint: z.boolean().optional(),
  openWorldHint: z.boolean().optional(),
})
export type ToolAnnotations = z.infer<typeof ToolAnnotations>

/** Whether the annotations contain a hint about the effects of the tool. A title is not a hint. */
export function hasHints(annotations: ToolAnnotations | undefined): boolean {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations ?? {}
  return [readOnlyHint, destructiveHint, idempotentHint, openWorldHint].some((hint) => hint !== undefined)
}

/** A tool as REST and the CLI show it. */
export const Tool = z.object({
  name: z.string().describe('Public name'),
  original: z.string().describe('Original name, given by the server'),
  server: z.string(),
  title: z.string().optional(),
  description: z.string(),
  risk: Risk,
  riskFrom: z.enum(['override', 'annotations', 'default', 'name']).describe('Source of the risk'),
  annotations: ToolAnnotations.optional(),
  inputSchema: z.unknown(),
  outputSchema: z.unknown().optional(),
  mended: z.string().optional().describe('What the gateway corrected in the definition'),
  drifted: z
    .enum(['changed', 'new'])
    .optional()
    .describe(
      'changed: the current definition differs from the accepted one. new: nobody has accepted the tool yet. Calls require approval in both cases',
    ),
})
export type Tool = z.infer<typeof Tool>

/** A tool in a list of servers, without its schemas, which can be large. */
export const ListedTool = Tool.omit({ inputSchema: true, outputSchema: true })
export type ListedTool = z.infer<typeof ListedTool>

export function toListedTool({ inputSchema: _input, outputSchema: _output, ...tool }: Tool): ListedTool {
  return tool
}

/** A tool that is not in the catalog, with the reason. */
export const SetAside = z.object({
  name: z.string().describe('Name of the tool, escaped'),
  reason: z.string(),
  state: PinState.optional().describe('Set if somebody can accept the tool'),
})
export type SetAside = z.infer<typeof SetAside>
