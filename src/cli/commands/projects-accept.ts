import type { Command } from 'commander'
import { z } from 'zod'
import { ScopedServer } from '../../contract/config.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { RepositoryServer, RepositoryState, WaitingContent } from '../../contract/repository.ts'
import { toVisible } from '../../shared/visible.ts'
import { countOf } from '../../shared/words.ts'
import { confirm, talkPaged } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, type Run } from './command.ts'

const Input = z.object({ name: z.string(), hash: z.string().optional(), yes: z.boolean().default(false) })

/** `projects accept`: shows what a file in a repository would run and contact, asks, and puts it into effect. */
export function addProjectsAccept(projects: Command, run: Run): void {
  addCommand(projects, run, {
    use: 'accept <name>',
    summary: 'review and accept the servers that a project takes from a repository',
    options: [
      ['--hash <hash>', 'accept only the content with this hash'],
      ['--yes', 'do not ask; needs --hash'],
    ],
    notes: [
      'Without a terminal, the command shows what waits and its hash. Repeat it with --hash and --yes to accept.',
    ],
    examples: ['sallyport projects accept shop', 'sallyport projects accept shop --hash 4f1c... --yes --json'],
    input: Input,
    async run({ terminal, request }, { name, hash, yes }) {
      const params = { name }
      if (yes && hash === undefined)
        throw new GatewayError('arguments-invalid', '--yes needs --hash: the hash names the content that you have seen')
      const state = await request('Reading the repository', (client) => client.projects.repository({ params }))
      const { waiting, problem } = state
      if (problem !== undefined) throw new GatewayError('repository-unreadable', problem)
      if (waiting === undefined) {
        terminal.answer(state, () => `Nothing waits for acceptance in ${toFile(state)}.`)
        return exit.done
      }
      if (hash !== undefined && hash !== waiting.hash) {
        const message = `The content of ${toFile(state)} no longer has this hash; now it has ${waiting.hash}`
        throw new GatewayError('repository-changed', message, { hash: waiting.hash })
      }
      if (!yes && !terminal.interactive) {
        terminal.answer(state, () => renderWaiting(state, waiting))
        terminal.next(`sallyport projects accept ${name} --hash ${waiting.hash} --yes`)
        return exit.usage
      }
      if (!yes && !(await talkPaged(terminal, renderWaiting(state, waiting)))) return exit.failed
      if (!yes && !(await confirm(terminal, toQuestion(name, waiting)))) return exit.failed
      const body = { hash: waiting.hash }
      const accepted = await request('Accepting', (client) => client.projects.acceptRepository({ params, body }))
      terminal.answer(accepted, () => toDone(accepted))
      return exit.done
    },
  })
}

function toFile({ path, file }: Pick<RepositoryState, 'path' | 'file'>): string {
  return toVisible(`${path}/${file}`)
}

function toQuestion(name: string, { servers }: WaitingContent): string {
  const count = servers.filter(({ outcome }) => outcome !== 'set-aside').length
  return `Accept ${countOf(count, 'server')} for the project ${toVisible(name)}?`
}

function toDone({ project, accepted }: RepositoryState): string {
  const names = accepted?.servers.map(toVisible).join(', ') || 'no servers'
  return `Accepted for the project ${toVisible(project)}: ${names}.`
}

function renderWaiting(
  state: RepositoryState,
  { servers, removed, ignored, difference, hash }: WaitingContent,
): string {
  const changed = state.accepted === undefined ? [] : difference
  return [
    `${toFile(state)} has content that waits for acceptance:`,
    '',
    ...servers.flatMap((server) => [...renderServer(server), '']),
    ...(removed.length > 0 ? [`Removed: ${removed.map(toVisible).join(', ')}`, ''] : []),
    ...(ignored.length > 0 ? ['Ignored in the file:', ...ignored.map((line) => `  ${toVisible(line)}`), ''] : []),
    ...(changed.length > 0 ? ['Difference:', ...changed.map(toVisible), ''] : []),
    `Hash: ${hash}`,
  ].join('\n')
}

/** `projects repository`: sets or removes the file that a project takes servers from. */
export function addProjectsRepository(projects: Command, run: Run): void {
  addCommand(projects, run, {
    use: 'repository <name> [path]',
    summary: 'take servers of a project from a file in a folder on the machine of the gateway',
    options: [
      ['--file <file>', 'path of the file in the folder (default: .mcp.json)'],
      ['--none', 'take no servers from a file, and remove those that were accepted'],
    ],
    examples: ['sallyport projects repository shop /srv/shop', 'sallyport projects repository shop --none'],
    input: z
      .object({
        name: z.string(),
        path: z.string().optional(),
        file: z.string().optional(),
        none: z.boolean().default(false),
      })
      .refine(({ path, none }) => (path !== undefined) !== none, 'give the path of the folder, or --none'),
    async run({ terminal, request }, { name, path, file }) {
      const repository = path === undefined ? null : { path, ...(file !== undefined && { file }) }
      const changed = await request('Setting the repository', (client) =>
        client.projects.change({ params: { name }, body: { repository } }),
      )
      const from = changed.repository === undefined ? 'no file' : toVisible(changed.repository)
      terminal.answer(changed, () => `${toVisible(changed.name)} takes servers from ${from}.`)
      if (path !== undefined) terminal.next(`sallyport projects accept ${name}`)
      return exit.done
    },
  })
}

const outcomes = { new: 'new', changed: 'changed', same: 'not changed', 'set-aside': 'not accepted' } as const

function renderServer({ name, outcome, because, definition, notes }: RepositoryServer): string[] {
  const reason = because === undefined ? '' : `: ${because}`
  const lines = [...renderDefinition(definition), ...notes.map((note) => `note: ${note}`)]
  return [`${name} (${outcomes[outcome]}${reason})`, ...lines.map((line) => `  ${line}`)].map(toVisible)
}

/** Quotes separate arguments, so that one argument with a space does not look like two. */
function renderDefinition(definition: unknown): string[] {
  const parsed = ScopedServer.safeParse(definition)
  if (!parsed.success) return [JSON.stringify(definition)]
  const { transport, command, args = [], env = {}, cwd, url, headers = {}, ...others } = parsed.data
  const rest = Object.entries(others).filter(([, value]) => value !== undefined)
  return [
    ...(command === undefined ? [] : [`runs: ${[command, ...args].map(toWord).join(' ')}`]),
    ...Object.entries(env).map(([key, value]) => `env: ${key}=${value}`),
    ...(cwd === undefined ? [] : [`in: ${cwd}`]),
    ...(url === undefined ? [] : [`contacts: ${url} (${transport})`]),
    ...Object.entries(headers).map(([key, value]) => `header: ${key}: ${value}`),
    ...rest.map(([key, value]) => `${key}: ${JSON.stringify(value)}`),
  ]
}

function toWord(word: string): string {
  return /^[\w./:@=+-]+$/.test(word) ? word : JSON.stringify(word)
}
