import { z } from 'zod'

export const Role = z.enum(['administrator', 'member', 'auditor'])
export type Role = z.infer<typeof Role>

/** Who calls. `user:admin-token` is the administrator's token file: it configures and looks. */
export const Principal = z.object({
  kind: z.enum(['user', 'agent', 'session', 'run']),
  name: z.string(),
  role: Role.optional(),
})
export type Principal = z.infer<typeof Principal>

export type PrincipalKey = `${Principal['kind']}:${string}`

export function toPrincipalKey(principal: Principal): PrincipalKey {
  return `${principal.kind}:${principal.name}`
}
