import { z } from 'zod'
import { Principal, Role } from '../principal.ts'
import { base } from './base.ts'

/** Who has signed in, and until when at the most. */
export const SignedIn = z.object({ name: z.string(), role: Role, expiresAt: z.string() })
export type SignedIn = z.infer<typeof SignedIn>

/** The one endpoint for whoever is not known yet. */
export const door = {
  signIn: base
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
  signOut: base
    .route({
      method: 'POST',
      path: '/sign-out',
      tags: ['people'],
      summary: 'End the sign-in that the cookie stands for',
    })
    .output(z.object({ signedOut: z.string() })),
  setupLink: base
    .route({
      method: 'POST',
      path: '/setup-link',
      tags: ['people'],
      summary: 'A new link that makes the first administrator; only while there is none. It voids the link before',
    })
    .output(z.object({ url: z.string() })),
  me: base.route({ method: 'GET', path: '/me', tags: ['people'], summary: 'Who is asking' }).output(Principal),
}
