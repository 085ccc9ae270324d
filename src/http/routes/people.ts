import { implement } from '@orpc/server'
import { api, door } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Role } from '../../contract/principal.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { toIso } from '../../lib/clock.ts'
import { setupPath } from '../setup-page.ts'
import type { ApiContext, SignInContext } from './context.ts'

export function createPeopleRoutes(gateway: Gateway) {
  const on = implement(api.people).$context<ApiContext>()
  return on.router({
    me: on.me.handler(({ context }) => context.principal),
    setupLink: on.setupLink.handler(({ context }) => {
      const code = gateway.identity.setup.code()
      if (code === undefined)
        throw new GatewayError('request-invalid', 'An administrator already exists and can add other users')
      return { url: `${context.url.replace(/\/$/, '')}${setupPath}?code=${code}` }
    }),
    signOut: on.signOut.handler(async ({ context }) => {
      await gateway.identity.signIns.signOut(context.principal)
      context.response.setHeader('set-cookie', context.cookie.clear())
      return { signedOut: context.principal.name }
    }),
  })
}

/** Routes that need neither a token nor a sign-in. */
export function createSignInRoutes(gateway: Gateway) {
  const on = implement(door).$context<SignInContext>()
  return on.router({
    signIn: on.signIn.handler(async ({ input, context }) => {
      const { cookie, principal, expiresAt } = await gateway.identity.signIns.signIn({
        ...input,
        address: context.address,
      })
      context.response.setHeader('set-cookie', context.cookie.set(cookie))
      return { name: principal.name, role: demandRole(principal.role), expiresAt: toIso(expiresAt) }
    }),
  })
}

function demandRole(role: Role | undefined): Role {
  if (role) return role
  throw new GatewayError('internal', 'A user has no role')
}
