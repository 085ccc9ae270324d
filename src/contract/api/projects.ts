import { z } from 'zod'
import { allUsers, operators } from '../access.ts'
import { Toolset } from '../config.ts'
import { RemovalPlan, Removed } from '../removal.ts'
import { endpoint, page } from './base.ts'

const byName = z.object({ params: z.strictObject({ name: z.string() }) })

/** What everybody who works here may know of a project; its definitions stand in the configuration. */
export const ProjectSummary = z.object({
  name: z.string(),
  owners: z.array(z.string()),
  servers: z.array(z.string()).describe('Names of the servers that it adds, changes or switches off'),
  rules: z.int().describe('How many rules it has'),
})
export type ProjectSummary = z.infer<typeof ProjectSummary>

export const NamedToolset = Toolset.extend({ name: z.string() })
export type NamedToolset = z.infer<typeof NamedToolset>

export const projects = {
  list: endpoint(allUsers)
    .route({ method: 'GET', path: '/projects', tags: ['projects'], summary: 'All projects' })
    .output(page(ProjectSummary)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/projects/{name}',
      tags: ['projects'],
      summary: 'One project',
      inputStructure: 'detailed',
    })
    .input(byName)
    .output(ProjectSummary),
  removal: endpoint(operators)
    .route({
      method: 'GET',
      path: '/projects/{name}/removal',
      tags: ['projects'],
      summary: 'What the removal of a project would take along',
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
    .route({ method: 'GET', path: '/toolsets', tags: ['toolsets'], summary: 'All toolsets' })
    .output(page(NamedToolset)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/toolsets/{name}',
      tags: ['toolsets'],
      summary: 'One toolset',
      inputStructure: 'detailed',
    })
    .input(byName)
    .output(NamedToolset),
}
