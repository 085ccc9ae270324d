import { z } from 'zod'

/** One entry of the file, as it would be applied. */
export const RepositoryServer = z.object({
  name: z.string().describe('Name of the entry in the file'),
  outcome: z
    .enum(['new', 'changed', 'same', 'set-aside'])
    .describe('set-aside: the entry is not accepted; `because` is the reason'),
  because: z.string().optional(),
  definition: z.unknown().describe('The definition that would be applied. ${NAME} is not resolved'),
  notes: z.array(z.string()).describe('Settings of the entry that are ignored or changed'),
})
export type RepositoryServer = z.infer<typeof RepositoryServer>

/** A content of the file that differs from what is in effect for this principal. */
export const WaitingContent = z.object({
  hash: z.string().describe('Names exactly what is shown here; give it when you accept'),
  servers: z.array(RepositoryServer),
  removed: z.array(z.string()).describe('Names of accepted servers that would be removed'),
  ignored: z.array(z.string()).describe('Parts of the file that are not servers'),
  difference: z.array(z.string()).describe('Difference between the accepted servers and these, line by line'),
})
export type WaitingContent = z.infer<typeof WaitingContent>

/** The file that a project takes servers from: what is accepted, and what waits. */
export const RepositoryState = z.object({
  project: z.string(),
  path: z.string(),
  file: z.string(),
  accepted: z
    .object({
      by: z.string(),
      at: z.string(),
      hash: z.string().describe('SHA-256 of the accepted bytes'),
      servers: z.array(z.string()),
    })
    .optional()
    .describe('Missing if nothing was accepted: then the project takes no servers from the file'),
  waiting: WaitingContent.optional().describe('Missing if the file has nothing that waits for acceptance'),
  problem: z.string().optional().describe('Why the file cannot be read. What was accepted stays in effect'),
})
export type RepositoryState = z.infer<typeof RepositoryState>
