import { z } from 'zod'
import { members } from '../access.ts'
import { ClientName } from '../client.ts'
import { ImportResult } from '../import.ts'
import { endpoint, ScopeText } from './base.ts'

const ImportBody = z.strictObject({
  text: z.string().describe('The text of a configuration file, in JSON, YAML or TOML'),
  scope: ScopeText.optional().describe('Scope of the servers. Default: global for administrators, else your own'),
  client: ClientName.optional().describe('The program that the text belongs to. Default: it is recognised'),
  hash: z.string().max(128).optional().describe('With `apply`: the hash of the preview'),
  replace: z
    .array(z.string())
    .max(1000)
    .optional()
    .describe('With `apply`: names of existing servers that are replaced by other definitions'),
  environment: z
    .array(z.string())
    .max(1000)
    .optional()
    .describe('With `apply`: variables that are added to the list `environment`. Only administrators may'),
})

export const imports = {
  run: endpoint(members)
    .route({
      method: 'POST',
      path: '/import',
      tags: ['servers'],
      summary: 'Preview the import of servers from the configuration of another program, or save them with `apply`',
      inputStructure: 'detailed',
    })
    .input(
      z.object({
        query: z
          .strictObject({ apply: z.enum(['true', 'false']).optional().describe('true: save the servers') })
          .optional(),
        body: ImportBody,
      }),
    )
    .output(ImportResult),
}
