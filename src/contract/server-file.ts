import { z } from 'zod'

/** One server of a server file, compared with the confirmed version of the file. */
export const ServerFileEntry = z.object({
  name: z.string(),
  change: z.enum(['added', 'changed', 'removed', 'same']),
  definition: z.unknown().describe('As in the file; literal secrets are hidden and ${NAME} is not resolved'),
  before: z.unknown().describe('The confirmed definition, for a changed server'),
  variables: z.array(z.string()).describe('Variables and secrets that the server would get'),
})
export type ServerFileEntry = z.infer<typeof ServerFileEntry>

/** The file `mcp-servers.json` that `serve` reads in addition to the configuration. */
export const ServerFile = z.object({
  file: z.string(),
  state: z
    .enum(['in-force', 'waiting', 'refused'])
    .describe('waiting: the newest content is not used until an administrator confirms it. refused: it cannot be used'),
  hash: z.string().optional().describe('Identifies the content that waits. The confirmation must name it'),
  reason: z.string().optional().describe('Why the newest content is not in use'),
  servers: z.array(ServerFileEntry),
  ignored: z.array(z.string()).describe('Settings in the file that have no effect'),
  overridden: z.array(z.string()).describe('Servers that the configuration replaces'),
})
export type ServerFile = z.infer<typeof ServerFile>
