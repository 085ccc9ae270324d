import { z } from 'zod'
import { allUsers, members, operators } from '../access.ts'
import { SavedSecret, Secret, SecretHost, SecretName } from '../secret.ts'
import { endpoint, page, ScopeText } from './base.ts'

const named = z.object({
  params: z.strictObject({ name: SecretName }),
  query: z.strictObject({ scope: ScopeText.optional() }).optional(),
})

export const secrets = {
  list: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/secrets',
      tags: ['secrets'],
      summary: 'Names, scopes and bindings of secrets; no answer ever holds a value',
    })
    .output(page(Secret)),
  set: endpoint(members)
    .route({
      method: 'PUT',
      path: '/secrets/{name}',
      tags: ['secrets'],
      summary: 'Store a value under a name, in place of the one before',
      inputStructure: 'detailed',
    })
    .input(
      named.extend({
        body: z.strictObject({
          value: z.string().min(1).max(65_536).describe('Encrypted at once and never shown again'),
          hosts: z.array(SecretHost).max(64).optional().describe('The only hosts that it may be sent to'),
          servers: z.array(z.string().min(1)).max(64).optional().describe('The only servers that it may be handed to'),
        }),
      }),
    )
    .output(SavedSecret),
  remove: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/secrets/{name}',
      tags: ['secrets'],
      summary: 'Forget a secret; servers that use it are connected anew, without it',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Secret),
  rotateKey: endpoint(operators)
    .route({
      method: 'POST',
      path: '/secrets/rotate-key',
      tags: ['secrets'],
      summary: 'Encrypt every secret under a new key and forget the old one',
    })
    .output(z.object({ keyVersion: z.int(), secrets: z.int().describe('How many were encrypted anew') })),
}
