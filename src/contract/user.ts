import { z } from 'zod'
import { Role } from './principal.ts'
import { ServerName } from './server.ts'

/** The same syntax as for servers, because user names are part of scopes. `admin-token` is reserved for the admin token. */
export const UserName = ServerName.refine(
  (name) => name.toLowerCase() !== 'admin-token',
  'is reserved for the admin token',
)

/** Only the length is checked: rules about characters make passwords hard to remember, but not harder to guess. */
export const Password = z
  .string()
  .min(12, 'must have at least 12 characters')
  .max(1024, 'must have at most 1024 characters')

export const GroupName = ServerName

export const User = z.object({
  id: z.string().describe('Never changes. A later user with the same name has a different id'),
  name: z.string(),
  role: Role,
  groups: z.array(z.string()).describe('Groups of the user. A rule can require approval by a group'),
  createdAt: z.string(),
  signedInAt: z.string().optional().describe('Time of the last sign-in of this user'),
  disabledAt: z
    .string()
    .optional()
    .describe(
      'Set if the user is disabled: the user cannot sign in, and agents and sessions of the user cannot be used',
    ),
})
export type User = z.infer<typeof User>
