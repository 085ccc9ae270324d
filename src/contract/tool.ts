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

/** Whether a tool declares anything about itself; a title is not a hint. */
export function hasHints(annotations: ToolAnnotations | undefined): boolean {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations ?? {}
  return [readOnlyHint, destructiveHint, idempotentHint, openWorldHint].some((hint) => hint !== undefined)
}

/** A tool as people and programs see it on REST and in the CLI. */
export const Tool = z.object({
  name: z.string().describe('Public name'),
  original: z.string().describe("The server's own name"),
  server: z.string(),
  title: z.string().optional(),
  description: z.string(),
  risk: Risk,
  riskFrom: z.enum(['override', 'annotations', 'default', 'name']).describe('What the risk was taken from'),
  annotations: ToolAnnotations.optional(),
  inputSchema: z.unknown(),
  outputSchema: z.unknown().optional(),
  mended: z.string().optional().describe('What was corrected in the definition'),
  drifted: z
    .enum(['changed', 'new'])
    .optional()
    .describe('The server says something else by now, or nobody has accepted the tool yet: calls of it ask'),
})
export type Tool = z.infer<typeof Tool>

/** A tool that is not offered, and why. */
export const SetAside = z.object({
  name: z.string().describe('Its name, escaped'),
  reason: z.string(),
  state: PinState.optional().describe('Set where somebody can accept it'),
})
export type SetAside = z.infer<typeof SetAside>
