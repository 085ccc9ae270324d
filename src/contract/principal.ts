import { z } from 'zod'

export const Role = z.enum(['administrator', 'member', 'auditor'])
export type Role = z.infer<typeof Role>

/** Who calls. `user:admin-token` is the administrator's token file: it configures and looks. */
export const Principal = z.object({
  kind: z.enum(['user', 'agent', 'session', 'run']),
  name: z.string(),
  /** The identity behind the name. After a removal the name can belong to a different user or agent; an id cannot. */
  id: z.string().optional(),
  role: Role.optional(),
  /** A user who has signed in, in a browser or for one command. Only a person answers questions. */
  person: z.boolean().optional(),
  /** The user behind an agent, a session or a run. */
  owner: z.string().optional(),
  /** The project whose settings a session inherits; an agent's stands in the configuration. */
  project: z.string().optional(),
})
export type Principal = z.infer<typeof Principal>

export type PrincipalKey = `${Principal['kind']}:${string}`

/** The user behind whoever calls; what a user does is their own. */
export function userBehind({ kind, name, owner }: Principal): string | undefined {
  return kind === 'user' ? name : owner
}

export function toPrincipalKey(principal: Principal): PrincipalKey {
  return `${principal.kind}:${principal.name}`
}

/**
 * What stored data refers to. Sessions are never renamed or reused, so their name is enough; users and agents from before
 * ids existed have the id that this function gives.
 */
export function toPrincipalId({ kind, name, id }: Pick<Principal, 'kind' | 'name' | 'id'>): string {
  return id ?? `${kind}-${name}`
}
