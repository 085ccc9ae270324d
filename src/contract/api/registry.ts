import { z } from 'zod'
import { operators } from '../access.ts'
import { GalleryPlan } from '../gallery.ts'
import { RegistryName, RegistryServer, RegistryVersion } from '../registry.ts'
import { SecretName } from '../secret.ts'
import { ServerDetail, ServerName } from '../server.ts'
import { endpoint, page, ScopeText } from './base.ts'

const Choice = z.strictObject({
  server: RegistryName.describe('Name in the registry'),
  version: RegistryVersion.describe('Exact version'),
  name: ServerName.describe('Name of the server in this gateway'),
  connection: z.string().max(32).optional().describe('Id of the way to connect. Default: the first'),
  scope: ScopeText.optional().describe('Scope of the server. Default: global'),
  values: z
    .record(SecretName, z.string().min(1).max(65_536))
    .optional()
    .describe('Values of variables. Values of secrets are stored encrypted and never shown'),
})

export const registry = {
  search: endpoint(operators)
    .route({
      method: 'GET',
      path: '/registry',
      tags: ['gallery'],
      summary: 'Search the newest versions of servers in the registry; contacts the registry',
    })
    .input(
      z
        .strictObject({
          search: z.string().max(256).optional().describe('Text that the name contains'),
          limit: z.coerce.number().int().min(1).max(100).default(50).describe('Entries per page'),
          cursor: z.string().max(1024).optional().describe('`next` of the previous page'),
        })
        .optional(),
    )
    .output(page(RegistryServer).extend({ skipped: z.int().describe('Number of servers with a wrong shape') })),
  plan: endpoint(operators, false)
    .route({
      method: 'POST',
      path: '/registry/plan',
      tags: ['gallery'],
      summary: 'Show what a server of the registry would add, and which values are missing; changes nothing',
    })
    .input(Choice)
    .output(GalleryPlan),
  add: endpoint(operators)
    .route({
      method: 'POST',
      path: '/registry/add',
      tags: ['gallery'],
      summary: 'Add a server of the registry in an exact version',
      successStatus: 201,
    })
    .input(Choice)
    .output(ServerDetail),
}
