import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import type { GalleryConnection, GalleryDetail, GalleryVariable } from '../../contract/gallery.ts'
import { toVisible } from '../../shared/visible.ts'
import { countOf } from '../../shared/words.ts'
import { exit } from '../terminal/exit.ts'
import { renderTable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { renderFacts } from '../terminal/words.ts'
import { addCommand, addExamples, addGlobalOptions, type Context, type Run } from './command.ts'

export function addGallery(program: Command, run: Run): void {
  const gallery = program.command('gallery').description('find known MCP servers, and what is needed to add them')
  addGlobalOptions(gallery)
  addExamples(gallery, ['sallyport gallery list postgres', 'sallyport gallery show github'])

  addCommand(gallery, run, {
    use: 'list [search]',
    summary: 'list known servers; with a search, those whose name, purpose, maker or category contain its words',
    options: [
      ['--registry', 'search the registry of `registry.url` instead; only for administrators'],
      ['--cursor <cursor>', 'with --registry: show the page that follows the previous answer'],
    ],
    examples: [
      'sallyport gallery list',
      'sallyport gallery list "issues projects"',
      'sallyport gallery list notes --registry',
    ],
    input: z.object({
      search: z.string().max(256).optional(),
      registry: z.boolean().default(false),
      cursor: z.string().optional(),
    }),
    async run(context, { search, registry, cursor }) {
      const { terminal, request } = context
      if (registry) return listRegistry(context, { search, cursor })
      if (cursor !== undefined) throw new GatewayError('request-invalid', '--cursor needs --registry')
      const page = await request('Reading the gallery', (client) => client.gallery.list({ search }))
      terminal.answer(page, () => {
        if (page.items.length === 0) return 'No entry of the gallery matches.'
        return renderTable(
          page.items,
          [
            { title: 'id', value: ({ id }) => id },
            { title: 'title', value: ({ title }) => title, drops: 2 },
            { title: 'category', value: ({ category }) => category, drops: 1 },
            {
              title: 'connections',
              value: ({ connections }) => connections.map(({ id }) => id).join(', '),
              drops: 3,
            },
            { title: 'purpose', value: ({ purpose }) => purpose, shrinks: true },
          ],
          terminal.width,
        )
      })
      terminal.next(page.items.length === 0 ? 'sallyport gallery list' : 'sallyport gallery show ID')
      return exit.done
    },
  })

  addCommand(gallery, run, {
    use: 'show <id>',
    summary: 'show a known server with its connections, its variables and where to get them',
    examples: ['sallyport gallery show github', 'sallyport gallery show github --json'],
    input: z.object({ id: z.string() }),
    async run({ terminal, request }, { id }) {
      const entry = await request('Reading the gallery', (client) => client.gallery.get({ params: { id } }))
      terminal.answer(entry, () => renderEntry(terminal, entry))
      terminal.next(`sallyport servers add ${entry.id}`)
      return exit.done
    },
  })
}

async function listRegistry(
  { terminal, request }: Context,
  wanted: { readonly search: string | undefined; readonly cursor: string | undefined },
): Promise<number> {
  const page = await request('Searching the registry', (client) => client.registry.search(wanted))
  terminal.answer(page, () => {
    if (page.items.length === 0) return 'No server of the registry matches.'
    return renderTable(
      page.items,
      [
        { title: 'name', value: ({ id }) => id },
        { title: 'version', value: ({ version }) => version },
        { title: 'state', value: ({ status }) => status, drops: 1 },
        {
          title: 'connections',
          value: ({ connections }) => connections.map(({ id }) => id).join(', ') || 'none usable',
          drops: 2,
        },
        { title: 'purpose', value: ({ purpose }) => purpose, shrinks: true },
      ],
      terminal.width,
    )
  })
  if (page.skipped > 0) terminal.talk(`${countOf(page.skipped, 'server')} left out, because the data are not valid.`)
  if (page.next !== null) terminal.next(`sallyport gallery list --registry --cursor ${toVisible(page.next)}`)
  terminal.next('sallyport servers add NAME --from-registry SERVER --version VERSION')
  return exit.done
}

function renderEntry(terminal: Terminal, entry: GalleryDetail): string {
  const { verified, risk } = entry
  const facts = renderFacts([
    ['id', entry.id],
    ['category', entry.category],
    ['made by', entry.vendor && `${entry.vendor}${entry.official ? '' : ' (not the maker of the service)'}`],
    ['documentation', entry.docs],
    ['risks', risk.note],
    ['verified', verified && `${verified.when}, ${verified.how}: ${verified.source}`],
    ['source', entry.own ? 'configuration of this gateway' : undefined],
  ])
  const { bold } = terminal.colours
  return [
    `${bold(toVisible(entry.title))}\n${toVisible(entry.purpose)}`,
    facts,
    ...entry.connections.map((connection, index) => renderConnection(terminal, connection, index === 0)),
    ...(entry.guidance === undefined ? [] : [entry.guidance.split('\n').map(toVisible).join('\n')]),
  ].join('\n\n')
}

function renderConnection(terminal: Terminal, connection: GalleryConnection, isFirst: boolean): string {
  const { id, title, started } = connection
  const heading = `${toVisible(id)}: ${toVisible(title)}${isFirst ? ' (default)' : ''}`
  const target = connection.transport === 'stdio' ? [connection.command, ...connection.args].join(' ') : connection.url
  const facts = renderFacts([
    [connection.transport === 'stdio' ? 'command' : 'address', target],
    ['sign-in', connection.auth.map((auth) => toSignIn(auth)).join('; ') || undefined],
    ['note', connection.note],
    ['started', started && `${started.when}, version ${started.version}, ${started.tools} tools`],
  ])
  const variables = connection.variables.map((variable) => `  ${describeVariable(variable)}`)
  return [terminal.colours.bold(heading), facts, ...(variables.length > 0 ? ['values', ...variables] : [])].join('\n')
}

/** `NAME: Title (secret). Description. Link` */
export function describeVariable(variable: GalleryVariable): string {
  const { name, title, secret, required, description, example, where } = variable
  const kinds = [secret && 'secret', !required && 'optional', variable.default && `default ${variable.default}`]
  const kind = kinds.filter(Boolean).join(', ')
  const texts = [
    `${name}: ${title}${kind === '' ? '' : ` (${kind})`}`,
    description,
    example && `Example: ${example}`,
    where && `Get it at ${where}`,
  ]
  return toVisible(texts.filter(Boolean).join('. '))
}

function toSignIn(auth: GalleryConnection['auth'][number]): string {
  if (auth.kind === 'none') return 'none needed'
  if (auth.kind === 'bearer') return 'token'
  if (auth.kind === 'header') return `header ${auth.header}`
  if (auth.kind === 'environment') return 'environment variable'
  return `OAuth, registration ${auth.registration}${auth.note === undefined ? '' : `: ${auth.note}`}`
}
