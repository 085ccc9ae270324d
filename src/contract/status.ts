import { z } from 'zod'
import { ConnectionState } from './server.ts'

export const Status = z.object({
  healthy: z.boolean().describe('False if an enabled server is not connected, or the audit record cannot be written'),
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
      .describe('Why the audit record cannot be written. Calls are refused in this state'),
  }),
  config: z.object({
    file: z.string(),
    problems: z.array(z.string()),
    notices: z
      .array(z.string())
      .describe('Files beside the configuration whose newest content is not in use, with the reason'),
    restart: z.array(z.string()).describe('Changed settings that take effect only after a restart'),
  }),
  servers: z.array(
    z.object({
      name: z.string(),
      title: z.string().optional(),
      scope: z.string(),
      state: ConnectionState,
      tools: z.int(),
      error: z.string().optional(),
      output: z.array(z.string()).optional().describe('The last lines that the program wrote to standard error'),
    }),
  ),
  repositories: z
    .array(z.object({ project: z.string(), file: z.string(), message: z.string() }))
    .describe(
      'Files of repositories that wait for acceptance or cannot be read. They do not make the gateway unhealthy',
    ),
  calls: z.object({ running: z.int() }),
  anchors: z
    .array(
      z.object({
        target: z.string(),
        waiting: z.int().describe('Number of anchors that are not delivered yet'),
        lost: z.int().describe('Number of anchors that were dropped because too many were waiting'),
        deliveredAt: z.string().optional(),
        error: z.string().optional().describe('Why the last attempt failed'),
      }),
    )
    .describe('The places outside the database that anchors are written to'),
  retention: z
    .object({
      days: z.int().describe('Days after which entries of the audit record are removed'),
      held: z.string().optional().describe('Why retention is paused'),
      last: z
        .object({ at: z.string(), before: z.string(), entries: z.int() })
        .optional()
        .describe('The last removal of old entries since this gateway started'),
    })
    .optional()
    .describe('Removal of old entries; missing if the audit record is kept forever'),
})
export type Status = z.infer<typeof Status>
