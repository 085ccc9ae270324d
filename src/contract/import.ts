import { z } from 'zod'
import { ConnectionState } from './server.ts'

export const ImportOutcome = z.enum(['new', 'same', 'changed', 'skipped'])
export type ImportOutcome = z.infer<typeof ImportOutcome>

export const ImportedServer = z.object({
  name: z.string().describe('The name that the server has here'),
  title: z.string().describe('The name in the text'),
  scope: z.string(),
  outcome: ImportOutcome.describe(
    'new: it is added. same: it exists already. changed: another definition exists under this name, and is replaced only if `replace` names it. skipped: it is not saved, for the reason in `notes`',
  ),
  notes: z.array(z.string()).describe('What becomes of single fields, and why an entry is skipped'),
  definition: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('The definition as it is saved. `${NAME}` is in the place of each secret; a taken name gets a suffix'),
  saved: z.boolean().optional().describe('With `apply`: whether the server was saved'),
  state: ConnectionState.optional().describe('With `apply`: the state after the first attempt to connect'),
  error: z.string().optional().describe('With `apply`: why the server is not connected'),
})
export type ImportedServer = z.infer<typeof ImportedServer>

export const ImportedSecret = z.object({
  name: z.string(),
  scope: z.string(),
  servers: z.array(z.string()),
  state: z
    .enum(['new', 'missing', 'stored'])
    .describe('new: its value is in the text and is stored. missing: store it. stored: it exists and is used'),
  description: z.string().optional().describe('What the text says about it'),
})
export type ImportedSecret = z.infer<typeof ImportedSecret>

export const ImportedVariable = z.object({
  name: z.string(),
  servers: z.array(z.string()),
  listed: z.boolean().describe('Whether the configuration lists the variable, so that servers can use it'),
  fallback: z.boolean().describe('Whether the text has a value for the case that the variable is missing'),
  description: z.string().optional(),
})
export type ImportedVariable = z.infer<typeof ImportedVariable>

export const ImportReport = z.object({ key: z.string(), message: z.string() })

/** What an import does. Values of secrets are not included. */
export const ImportResult = z.object({
  hash: z.string().describe('Names this preview. It changes when the text or the existing servers change'),
  from: z.array(z.string()).describe('The programs and forms of configuration that were recognised'),
  servers: z.array(ImportedServer),
  reported: z.array(ImportReport).describe('Parts of the text that do not become a server'),
  secrets: z.array(ImportedSecret),
  variables: z.array(ImportedVariable),
  warnings: z.array(z.string()).optional().describe('With `apply`: problems of the secrets that were stored'),
})
export type ImportResult = z.infer<typeof ImportResult>
