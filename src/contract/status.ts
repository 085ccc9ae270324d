import { z } from 'zod'
import { ConnectionState } from './server.ts'

export const Status = z.object({
  healthy: z.boolean().describe('false when any enabled server is not connected, or the record cannot be written'),
  version: z.string(),
  instance: z.string(),
  url: z.string(),
  startedAt: z.string(),
  uptimeMs: z.number(),
  storage: z.object({
    kind: z.enum(['sqlite', 'postgresql']),
    healthy: z.boolean(),
    problem: z
      .object({ code: z.string(), message: z.string() })
      .optional()
      .describe('Why nothing can be recorded, and therefore no call is made'),
  }),
  config: z.object({
    file: z.string(),
    problems: z.array(z.string()),
    restart: z.array(z.string()).describe('Settings that were changed and count only after a restart'),
  }),
  servers: z.array(
    z.object({
      name: z.string(),
      scope: z.string(),
      state: ConnectionState,
      tools: z.int(),
      error: z.string().optional(),
      output: z.array(z.string()).optional().describe('What its program wrote to standard error last'),
    }),
  ),
  calls: z.object({ running: z.int() }),
  anchors: z
    .array(
      z.object({
        target: z.string(),
        waiting: z.int().describe('Anchors that it has not taken yet'),
        lost: z.int().describe('Anchors that were given up because too many waited'),
        deliveredAt: z.string().optional(),
        error: z.string().optional().describe('Why the last attempt failed'),
      }),
    )
    .describe('Where the record is anchored outside the database'),
  retention: z
    .object({
      days: z.int().describe('How long entries of the record are kept'),
      held: z.string().optional().describe('Why nothing is removed at present'),
      last: z
        .object({ at: z.string(), before: z.string(), entries: z.int() })
        .optional()
        .describe('The last removal since this gateway started: entries before a time'),
    })
    .optional()
    .describe('Removal of old entries; missing when the record is kept for ever'),
})
export type Status = z.infer<typeof Status>
