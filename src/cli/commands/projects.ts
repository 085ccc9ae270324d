import type { Command } from 'commander'
import { z } from 'zod'
import type { ProjectSummary } from '../../contract/api/projects.ts'
import { toVisible } from '../../shared/visible.ts'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type OptionSpec, type Run } from './command.ts'
import { addProjectsAccept, addProjectsRepository } from './projects-accept.ts'
import { runRemoval } from './removal.ts'

const ownerOption: OptionSpec = ['--owner <user>', 'user who may change the project; can be repeated', 'many']
const titleOption: OptionSpec = ['--title <text>', 'name for people, shown beside the name']

function toOwners({ owners }: ProjectSummary): string {
  return owners.length === 0 ? 'administrators' : toVisible(owners.join(', '))
}

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
            ...(page.items.some(({ title }) => title !== undefined)
              ? [{ title: 'title', value: (project: ProjectSummary) => project.title ?? '', shrinks: true, drops: 1 }]
              : []),
            { title: 'owners', value: (project) => project.owners.join(', ') || 'administrators', shrinks: true },
            { title: 'servers', value: (project) => project.servers.join(', '), shrinks: true },
            { title: 'rules', value: (project) => String(project.rules) },
          ],
          terminal.width,
        )
      })
      if (page.items.length === 0) terminal.next('sallyport projects create NAME --owner USER')
      return exit.done
    },
  })

  addCommand(projects, run, {
    use: 'create <name>',
    summary: 'create a project',
    options: [ownerOption, titleOption],
    examples: ['sallyport projects create shop --owner anna', "sallyport projects create shop --title 'Web shop'"],
    input: z.object({ name: z.string(), owner: z.array(z.string()), title: z.string().optional() }),
    async run({ terminal, request }, { name, owner, title }) {
      const made = await request('Creating the project', (client) =>
        client.projects.add({ name, owners: owner, title }),
      )
      terminal.answer(made, () => `Created ${toVisible(made.name)}, owned by ${toOwners(made)}.`)
      return exit.done
    },
  })

  addCommand(projects, run, {
    use: 'rename <name> [to]',
    summary: 'give a project another name, or with --title another title',
    options: [titleOption],
    examples: ['sallyport projects rename shop store', "sallyport projects rename shop --title 'Web shop'"],
    input: z
      .object({ name: z.string(), to: z.string().optional(), title: z.string().optional() })
      .refine(({ to, title }) => to !== undefined || title !== undefined, 'give the new name, or --title'),
    async run({ terminal, request }, { name, to, title }) {
      const body = { ...(to !== undefined && { name: to }), ...(title !== undefined && { title: title || null }) }
      const changed = await request('Renaming the project', (client) =>
        client.projects.change({ params: { name }, body }),
      )
      const titled = changed.title === undefined ? '' : `, with the title ${toVisible(changed.title)}`
      terminal.answer(changed, () => `The project is named ${toVisible(changed.name)}${titled}.`)
      return exit.done
    },
  })

  addCommand(projects, run, {
    use: 'owners <name> [users...]',
    summary: 'set the owners of a project; they may change its servers, rules and secrets',
    options: [['--none', 'no owners: only administrators may change the project']],
    examples: ['sallyport projects owners shop anna ben', 'sallyport projects owners shop --none'],
    input: z
      .object({ name: z.string(), users: z.array(z.string()).default([]), none: z.boolean().default(false) })
      .refine(({ users, none }) => users.length > 0 !== none, 'name the users who own the project, or give --none'),
    async run({ terminal, request }, { name, users: owners }) {
      const changed = await request('Setting the owners', (client) =>
        client.projects.change({ params: { name }, body: { owners } }),
      )
      terminal.answer(changed, () => `${toVisible(changed.name)} is owned by ${toOwners(changed)}.`)
      return exit.done
    },
  })

  addProjectsRepository(projects, run)
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
