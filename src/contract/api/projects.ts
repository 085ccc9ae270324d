import { z } from 'zod'
import { allUsers, members, operators } from '../access.ts'
import { Repository, Toolset } from '../config.ts'
import { RemovalPlan, Removed } from '../removal.ts'
import { RepositoryState } from '../repository.ts'
import { ServerName, ServerTitle } from '../server.ts'
import { endpoint, page } from './base.ts'

const byName = z.object({ params: z.strictObject({ name: z.string() }) })

/** What every user may see of a project. The definitions of its servers are not included, because they may be confidential. */
export const ProjectSummary = z.object({
  name: z.string(),
  title: z.string().optional(),
  owners: z.array(z.string()),
  servers: z.array(z.string()).describe('Names of the servers that the project adds, changes or disables'),
  rules: z.int().describe('Number of rules of the project'),
  repository: z.string().optional().describe('Path of the file that the project takes servers from'),
})
export type ProjectSummary = z.infer<typeof ProjectSummary>

export const NamedToolset = Toolset.extend({ name: z.string() })
export type NamedToolset = z.infer<typeof NamedToolset>

export const projects = {
  list: endpoint(allUsers)
    .route({ method: 'GET', path: '/projects', tags: ['projects'], summary: 'List projects' })
    .output(page(ProjectSummary)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/projects/{name}',
      tags: ['projects'],
      summary: 'Get one project',
      inputStructure: 'detailed',
    })
    .input(byName)
    .output(ProjectSummary),
  repository: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/projects/{name}/repository',
      tags: ['projects'],
      summary:
        'Show the file that a project takes servers from: what is accepted, what waits for you, and the difference. For administrators, auditors and the owners of the project',
      inputStructure: 'detailed',
    })
    .input(byName)
    .output(RepositoryState),
  acceptRepository: endpoint(members)
    .route({
      method: 'POST',
      path: '/projects/{name}/repository/accept',
      tags: ['projects'],
      summary: 'Accept the content with this hash; 409 if the file has changed since it was shown',
      inputStructure: 'detailed',
    })
    .input(byName.extend({ body: z.strictObject({ hash: z.string().describe('`waiting.hash`, as it was shown') }) }))
    .output(RepositoryState),
  add: endpoint(operators)
    .route({ method: 'POST', path: '/projects', tags: ['projects'], summary: 'Create a project', successStatus: 201 })
    .input(
      z.strictObject({
        name: ServerName,
        title: ServerTitle.optional(),
        owners: z
          .array(z.string())
          .default([])
          .describe('Users who may change the project; without owners only administrators'),
      }),
    )
    .output(ProjectSummary),
  change: endpoint(operators)
    .route({
      method: 'PATCH',
      path: '/projects/{name}',
      tags: ['projects'],
      summary:
        'Change title, owners, repository or name of a project. It keeps its name while stored data refers to the name; the error lists this data',
      inputStructure: 'detailed',
    })
    .input(
      byName.extend({
        body: z
          .strictObject({
            name: ServerName.optional(),
            title: ServerTitle.nullable().optional().describe('null removes the title'),
            owners: z.array(z.string()).optional(),
            repository: Repository.nullable()
              .optional()
              .describe('The file to take servers from; null removes it with the accepted servers'),
          })
          .refine((body) => Object.keys(body).length > 0, 'give at least one of name, title, owners and repository'),
      }),
    )
    .output(ProjectSummary),
  removal: endpoint(operators)
    .route({
      method: 'GET',
      path: '/projects/{name}/removal',
      tags: ['projects'],
      summary: 'List everything that the removal of a project would remove or end',
      inputStructure: 'detailed',
    })
    .input(byName)
    .output(RemovalPlan),
  remove: endpoint(operators)
    .route({
      method: 'DELETE',
      path: '/projects/{name}',
      tags: ['projects'],
      summary: 'Remove a project with everything that belongs to it: sessions, servers, secrets, grants',
      inputStructure: 'detailed',
    })
    .input(byName)
    .output(Removed),
}

export const toolsets = {
  list: endpoint(allUsers)
    .route({ method: 'GET', path: '/toolsets', tags: ['toolsets'], summary: 'List toolsets' })
    .output(page(NamedToolset)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/toolsets/{name}',
      tags: ['toolsets'],
      summary: 'Get one toolset',
      inputStructure: 'detailed',
    })
    .input(byName)
    .output(NamedToolset),
}
