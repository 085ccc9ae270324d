import { z } from 'zod'

export const Role = z.enum(['administrator', 'member', 'auditor'])
export type Role = z.infer<typeof Role>

/** Who makes a call. `user:admin-token` is the admin token: it can change the configuration and read everything. */
export const Principal = z.object({
  kind: z.enum(['user', 'agent', 'session', 'run']),
  name: z.string(),
  /** The identity behind the name. After a removal the name can belong to a different user or agent; an id cannot. */
  id: z.string().optional(),
  role: Role.optional(),
  /** A user who has signed in, in a browser or for one command. Only a person answers approvals. */
  person: z.boolean().optional(),
  /** The user who owns an agent, a session or a run. */
  owner: z.string().optional(),
  /** The project whose settings a session inherits. The project of an agent is in the configuration. */
  project: z.string().optional(),
})
export type Principal = z.infer<typeof Principal>

export type PrincipalKey = `${Principal['kind']}:${string}`

/** The user who is responsible for a call: the calling user, or the owner of the calling agent or session. */
export function userBehind({ kind, name, owner }: Principal): string | undefined {
  return kind === 'user' ? name : owner
}

export function toPrincipalKey(principal: Principal): PrincipalKey {
  return `${principal.kind}:${principal.name}`
}

/**
 * The id that stored data refer to. Names of sessions are never reused, so the name is enough. Users and agents that were
 * added before ids existed have the id that this function makes from their name.
 */
export function toPrincipalId({ kind, name, id }: Pick<Principal, 'kind' | 'name' | 'id'>): string {
  return id ?? `${kind}-${name}`
}
