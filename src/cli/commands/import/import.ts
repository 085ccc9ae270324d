import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../../contract/api/base.ts'
import { clientTitles } from '../../../contract/client.ts'
import type { ImportResult } from '../../../contract/import.ts'
import { thisMachine } from '../../clients/places.ts'
import { confirm } from '../../terminal/confirm.ts'
import { exit } from '../../terminal/exit.ts'
import { renderTable } from '../../terminal/table.ts'
import { addCommand, type Context, patience, type Run } from '../command.ts'
import { countOutcomes, renderImport } from './import-view.ts'
import { listFiles, readSource, type Source } from './sources.ts'

const Input = z.object({
  source: z.string().optional(),
  apply: z.boolean().default(false),
  yes: z.boolean().default(false),
  scope: ScopeText.optional(),
  replace: z.array(z.string()).default([]),
  environment: z.array(z.string()).default([]),
})
type Input = z.output<typeof Input>

export function addImport(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'import [source]',
    summary: 'import servers from a file, from a program such as claude-code, or from - (standard input)',
    options: [
      ['--apply', 'save the servers; without it, only show what would be saved'],
      ['--scope <scope>', 'scope of the servers: global (default), user:me, project:NAME or agent:NAME'],
      ['--replace <name>', 'replace this server, which exists with another definition; can be repeated', 'many'],
      ['--environment <name>', 'add this variable to the list `environment`; can be repeated', 'many'],
      ['--yes', 'do not ask'],
    ],
    notes: [
      'Without a source, lists the files of known programs on this machine and does not read them.',
      'The preview starts no server and contacts none. Values of secrets are never shown.',
    ],
    examples: [
      'sallyport import',
      'sallyport import claude-code',
      'sallyport import mcp-servers.json --apply',
      'sallyport import - --json < config.yaml',
      'sallyport import cursor --apply --replace github --environment LOG_LEVEL',
    ],
    input: Input,
    async run(context, input) {
      if (input.source === undefined) return showFiles(context)
      // Sign in first: the password is the first line of standard input, and the text is the rest.
      if (input.source === '-' && context.settings.person) await context.address()
      return importSource(context, input, await readSource(input.source, thisMachine()))
    },
  })
}

function showFiles({ terminal }: Context): number {
  const items = listFiles(thisMachine())
  terminal.answer({ items }, () => {
    if (items.length === 0) return 'No files of known programs.'
    return renderTable(
      items,
      [
        { title: 'program', value: ({ client }) => clientTitles[client] },
        { title: 'file', value: ({ file }) => file, shrinks: true },
        { title: 'import with', value: toImportCommand },
      ],
      terminal.width,
    )
  })
  if (items.length === 0) terminal.next('sallyport import FILE')
  return exit.done
}

/** A file in the current folder may come with a repository, so it is imported only by its own name. */
function toImportCommand({ client, place }: ReturnType<typeof listFiles>[number]): string {
  return place === 'user' ? `sallyport import ${client}` : 'sallyport import FILE'
}

async function importSource(context: Context, input: Input, { text, client, file }: Source): Promise<number> {
  const { terminal, request } = context
  const body = { text, scope: input.scope, client }
  const preview = await request('Reading', (gateway) => gateway.imports.run({ body }))
  if (file !== undefined) terminal.talk(`Read ${file}`)
  if (!input.apply) {
    terminal.answer(preview, () => renderImport(terminal, preview))
    suggestApply(context, input, preview)
    return exit.done
  }
  if (!input.yes && terminal.interactive) {
    terminal.talk(renderImport(terminal, preview))
    if (!(await confirm(terminal, `Save ${countOutcomes(preview.servers)}?`))) return exit.failed
  }
  const { replace, environment } = input
  const result = await request(
    'Saving and connecting',
    (gateway) =>
      gateway.imports.run({
        query: { apply: 'true' },
        body: { ...body, hash: preview.hash, replace, environment },
      }),
    patience.connecting,
  )
  terminal.answer(result, () => renderImport(terminal, result))
  suggestAfter(context, result, client)
  return result.servers.some(isWithoutConnection) ? exit.notConnected : exit.done
}

function isWithoutConnection({ saved, state }: ImportResult['servers'][number]): boolean {
  return saved === true && state !== undefined && state !== 'connected' && state !== 'disabled'
}

function suggestApply({ terminal }: Context, { source, scope }: Input, { servers, variables }: ImportResult): void {
  const changed = servers.filter(({ outcome }) => outcome === 'changed')
  if (changed.length + servers.filter(({ outcome }) => outcome === 'new').length === 0) return
  const unlisted = variables.filter(({ listed, fallback }) => !listed && !fallback)
  terminal.next(
    [
      `sallyport import ${source} --apply`,
      ...(scope === undefined ? [] : [`--scope ${scope}`]),
      ...changed.map(({ name }) => `--replace ${name}`),
      ...unlisted.map(({ name }) => `--environment ${name}`),
    ].join(' '),
  )
}

function suggestAfter({ terminal }: Context, result: ImportResult, client: Source['client']): void {
  const missing = result.secrets.find(({ state }) => state === 'missing')
  if (missing) {
    const scope = missing.scope === 'global' ? '' : ` --scope ${missing.scope}`
    terminal.next(`sallyport secrets set ${missing.name}${scope}`)
  }
  if (client) terminal.next(`sallyport connect ${client}`)
}
