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
      summary: 'List names, scopes and bindings of secrets, without their values',
    })
    .output(page(Secret)),
  set: endpoint(members)
    .route({
      method: 'PUT',
      path: '/secrets/{name}',
      tags: ['secrets'],
      summary: 'Store a secret, or replace its value',
      inputStructure: 'detailed',
    })
    .input(
      named.extend({
        body: z.strictObject({
          value: z.string().min(1).max(65_536).describe('The value. It is stored encrypted and never shown'),
          hosts: z
            .array(SecretHost)
            .max(64)
            .optional()
            .describe('Hosts that the secret may be sent to. Default: any host'),
          servers: z
            .array(z.string().min(1))
            .max(64)
            .optional()
            .describe('Servers that may use the secret. Default: any server'),
        }),
      }),
    )
    .output(SavedSecret),
  remove: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/secrets/{name}',
      tags: ['secrets'],
      summary: 'Remove a secret; servers that use it reconnect without it',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Secret),
  rotateKey: endpoint(operators)
    .route({
      method: 'POST',
      path: '/secrets/rotate-key',
      tags: ['secrets'],
      summary: 'Encrypt all secrets with a new key and remove the old key',
    })
    .output(
      z.object({ keyVersion: z.int(), secrets: z.int().describe('Number of secrets that were encrypted again') }),
    ),
}
