import { z } from 'zod'
import { everyone, operators, persons } from '../access.ts'
import { Principal, Role } from '../principal.ts'
import { endpoint, publicEndpoint } from './base.ts'

/** Who has signed in, and until when at the most. */
export const SignedIn = z.object({ name: z.string(), role: Role, expiresAt: z.string() })
export type SignedIn = z.infer<typeof SignedIn>

/** The one endpoint for whoever is not known yet. */
export const door = {
  signIn: publicEndpoint
    .route({
      method: 'POST',
      path: '/sign-in',
      tags: ['people'],
      summary: 'Sign in as a person; the answer sets a cookie',
      spec: (operation) => ({ ...operation, security: [] }),
    })
    .input(z.strictObject({ name: z.string().max(256), password: z.string().max(4096) }))
    .output(SignedIn),
}

export const people = {
  signOut: endpoint(persons, false)
    .route({
      method: 'POST',
      path: '/sign-out',
      tags: ['people'],
      summary: 'End the sign-in that the cookie stands for',
    })
    .output(z.object({ signedOut: z.string() })),
  setupLink: endpoint(operators)
    .route({
      method: 'POST',
      path: '/setup-link',
      tags: ['people'],
      summary: 'A new link that makes the first administrator; only while there is none. It voids the link before',
    })
    .output(z.object({ url: z.string() })),
  me: endpoint(everyone)
    .route({ method: 'GET', path: '/me', tags: ['people'], summary: 'Who is asking' })
    .output(Principal),
}
