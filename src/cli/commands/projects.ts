import type { Command } from 'commander'
import { z } from 'zod'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type Run } from './command.ts'
import { addProjectsAccept } from './projects-accept.ts'
import { runRemoval } from './removal.ts'

export function addProjects(program: Command, run: Run): void {
  const projects = program.command('projects').description('manage projects: shared settings that sessions inherit')
  addGlobalOptions(projects)
  addExamples(projects, ['sallyport projects list', 'sallyport projects accept shop', 'sallyport projects remove shop'])

  addCommand(projects, run, {
    use: 'list',
    summary: 'list projects with their owners and servers',
    examples: ['sallyport projects list', 'sallyport projects list --json'],
    input: noInput,
    async run({ terminal, request }) {
      const page = await request('Listing projects', (client) => client.projects.list())
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No projects.'
        return renderTable(
          page.items,
          [
            { title: 'name', value: (project) => project.name },
            { title: 'owners', value: (project) => project.owners.join(', ') || 'administrators', shrinks: true },
            { title: 'servers', value: (project) => project.servers.join(', '), shrinks: true },
            { title: 'rules', value: (project) => String(project.rules) },
          ],
          terminal.width,
        )
      })
      if (page.items.length === 0) terminal.next('add an entry under `projects` in the configuration')
      return exit.done
    },
  })

  addProjectsAccept(projects, run)

  addCommand(projects, run, {
    use: 'remove <name>',
    summary: 'remove a project with its sessions, servers, secrets and grants',
    options: [['--yes', 'do not show what is removed, and do not ask']],
    examples: ['sallyport projects remove shop', 'sallyport projects remove shop --yes'],
    input: z.object({ name: z.string(), yes: z.boolean().default(false) }),
    run: (context, { name, yes }) => runRemoval(context, { kind: 'project', name, yes }),
  })
}
