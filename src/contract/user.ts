import { z } from 'zod'
import { Role } from './principal.ts'
import { ServerName } from './server.ts'

/** Stands in scopes and in the record, as names of servers do. */
export const UserName = ServerName.refine(
  (name) => name.toLowerCase() !== 'admin-token',
  "is the name of the administrator's token file",
)

/** Length is what makes a password hard to guess; rules about its characters only make it hard to remember. */
export const Password = z
  .string()
  .min(12, 'must have at least 12 characters')
  .max(1024, 'must have at most 1024 characters')

export const GroupName = ServerName

export const User = z.object({
  id: z.string().describe('Stays with this user; a later user of the same name has another one'),
  name: z.string(),
  role: Role,
  groups: z.array(z.string()).describe('Whom a rule may name as approvers'),
  createdAt: z.string(),
  signedInAt: z.string().optional().describe('The last time somebody signed in as this user'),
  disabledAt: z.string().optional().describe('Since when nobody may sign in as this user, nor use what it owns'),
})
export type User = z.infer<typeof User>
