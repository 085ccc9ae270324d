import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { GalleryDetail, GalleryId, GalleryPlan, GallerySummary } from '../gallery.ts'
import { SecretName } from '../secret.ts'
import { ServerDetail, ServerName } from '../server.ts'
import { endpoint, page, ScopeText } from './base.ts'

const byId = z.strictObject({ id: GalleryId.describe('Id of the entry') })

const Choice = z.strictObject({
  name: ServerName.optional().describe('Name of the server. Default: the id of the entry'),
  connection: z.string().max(32).optional().describe('Id of the way to connect. Default: the first of the entry'),
  scope: ScopeText.optional().describe('Scope of the server. Default: global'),
  values: z
    .record(SecretName, z.string().min(1).max(65_536))
    .optional()
    .describe('Values of variables. Values of secrets are stored encrypted and never shown'),
})

export const gallery = {
  list: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/gallery',
      tags: ['gallery'],
      summary: 'List known MCP servers that can be added',
    })
    .input(
      z
        .strictObject({
          search: z.string().max(256).optional().describe('Words that id, title, purpose, vendor or category contain'),
        })
        .optional(),
    )
    .output(page(GallerySummary)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/gallery/{id}',
      tags: ['gallery'],
      summary: 'Get one entry with its connections and variables',
      inputStructure: 'detailed',
    })
    .input(z.object({ params: byId }))
    .output(GalleryDetail),
  plan: endpoint(members, false)
    .route({
      method: 'POST',
      path: '/gallery/{id}/plan',
      tags: ['gallery'],
      summary: 'Show what an entry would add, and which values are missing; changes nothing',
      inputStructure: 'detailed',
    })
    .input(z.object({ params: byId, body: Choice.optional() }))
    .output(GalleryPlan),
  add: endpoint(members)
    .route({
      method: 'POST',
      path: '/gallery/{id}/add',
      tags: ['gallery'],
      summary:
        'Add the server of an entry. If required values are missing, the error values-missing lists them in `details.missing`',
      successStatus: 201,
      inputStructure: 'detailed',
    })
    .input(z.object({ params: byId, body: Choice.optional() }))
    .output(ServerDetail),
}
