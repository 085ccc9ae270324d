import { z } from 'zod'
import { everyone, operators, persons } from '../access.ts'
import { Principal, Role } from '../principal.ts'
import { endpoint, publicEndpoint } from './base.ts'

/** The signed-in user. The sign-in expires at `expiresAt` at the latest. */
export const SignedIn = z.object({ name: z.string(), role: Role, expiresAt: z.string() })
export type SignedIn = z.infer<typeof SignedIn>

/** The endpoint for callers without a token or a sign-in. */
export const door = {
  signIn: publicEndpoint
    .route({
      method: 'POST',
      path: '/sign-in',
      tags: ['people'],
      summary: 'Sign in with name and password; the answer sets a cookie',
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
      summary: 'Sign out: end the sign-in of the cookie',
    })
    .output(z.object({ signedOut: z.string() })),
  setupLink: endpoint(operators)
    .route({
      method: 'POST',
      path: '/setup-link',
      tags: ['people'],
      summary: 'Create a setup link for the first administrator, if none exists. The previous link becomes invalid',
    })
    .output(z.object({ url: z.string() })),
  me: endpoint(everyone)
    .route({ method: 'GET', path: '/me', tags: ['people'], summary: 'Get the principal of the caller' })
    .output(Principal),
}
