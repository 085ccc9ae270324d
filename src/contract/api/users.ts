import { z } from 'zod'
import { administrators, persons, readers } from '../access.ts'
import { Role } from '../principal.ts'
import { RemovalPlan, Removed } from '../removal.ts'
import { GroupName, Password, User, UserName } from '../user.ts'
import { endpoint, page } from './base.ts'

const named = z.object({ params: z.strictObject({ name: z.string().describe('Name of the user') }) })
const groups = z
  .array(GroupName)
  .max(100)
  .optional()
  .describe('Groups of the user. A rule can require approval by a group')

export const users = {
  list: endpoint(readers)
    .route({ method: 'GET', path: '/users', tags: ['users'], summary: 'List users' })
    .output(page(User)),
  add: endpoint(administrators)
    .route({ method: 'POST', path: '/users', tags: ['users'], summary: 'Add a user', successStatus: 201 })
    .input(z.strictObject({ name: UserName, role: Role, password: Password, groups }))
    .output(User),
  change: endpoint(administrators)
    .route({
      method: 'PATCH',
      path: '/users/{name}',
      tags: ['users'],
      summary: "Change a user's role or groups, or disable the user; ends the user's sign-ins",
      inputStructure: 'detailed',
    })
    .input(
      named.extend({
        body: z.strictObject({ role: Role.optional(), groups, disabled: z.boolean().optional() }),
      }),
    )
    .output(User),
  password: endpoint(persons)
    .route({
      method: 'POST',
      path: '/users/{name}/password',
      tags: ['users'],
      summary: "Set a password; ends the user's sign-ins",
      description:
        'To change your own password, send the current password as `current`. Administrators can set the passwords of other users.',
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ password: Password, current: z.string().max(4096).optional() }) }))
    .output(User),
  removal: endpoint(administrators)
    .route({
      method: 'GET',
      path: '/users/{name}/removal',
      tags: ['users'],
      summary: 'List everything that the removal of a user would remove or end',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(RemovalPlan),
  remove: endpoint(administrators)
    .route({
      method: 'DELETE',
      path: '/users/{name}',
      tags: ['users'],
      summary: 'Remove a user with everything that belongs to the user: agents, sessions, servers, secrets, grants',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Removed),
}
