import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../../contract/api/base.ts'
import { GatewayError } from '../../../contract/errors.ts'
import { type SavedServer, ServerDefinition, type ServerDetail, ServerOverride } from '../../../contract/server.ts'
import { isObject } from '../../../lib/json.ts'
import { toVisible } from '../../../shared/visible.ts'
import { editText } from '../../terminal/editor.ts'
import { exit } from '../../terminal/exit.ts'
import { addCommand, patience, type Run } from '../command.ts'
import { suggesting } from '../suggest.ts'
import { showChange } from './server-view.ts'
import { keepLiteralOption } from './servers-add.ts'
import { showingStart } from './start-progress.ts'

const Statement = z.discriminatedUnion('transport', [...ServerDefinition.options, ServerOverride])
type Statement = z.infer<typeof Statement>

export function addServersEdit(servers: Command, run: Run): void {
  addCommand(servers, run, {
    use: 'edit <name>',
    summary: 'edit the definition of a server in your editor (VISUAL or EDITOR)',
    options: [
      ['--scope <scope>', 'scope of the server, if several scopes have this name, such as agent:reviewer'],
      ['--yes', 'save without asking'],
      keepLiteralOption,
    ],
    notes: [
      'A definition contains only the names of secrets, such as ${GITHUB_TOKEN}, not their values. The text [secret] stands',
      'for a value in the configuration file that is not shown: leave it unchanged to keep the value.',
    ],
    examples: ['sallyport servers edit files', 'EDITOR="code --wait" sallyport servers edit files'],
    input: z.object({
      name: z.string(),
      scope: ScopeText.optional(),
      yes: z.boolean().default(false),
      keepLiteral: z.boolean().optional(),
    }),
    async run(context, { name, scope: wanted, yes, keepLiteral }) {
      const { terminal, request } = context
      const { parse, stringify } = await import('yaml')
      const get = () =>
        request('Reading the definition', (client) =>
          suggesting(client, name, () => client.servers.get({ params: { name }, query: { scope: wanted } })),
        )
      const before = await get()
      const { data: scope } = ScopeText.safeParse(before.scope)
      const server = await editText<Statement, SavedServer>({
        terminal,
        yes,
        name: `${toFileName(name)}.yaml`,
        text: stringify(toStatement(before)),
        comment: '#',
        check(text) {
          try {
            const parsed = Statement.safeParse(parse(text))
            if (parsed.success) return { value: parsed.data }
            return {
              problems: parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'entry'}: ${message}`),
            }
          } catch (error) {
            return { problems: [error instanceof Error ? error.message : String(error)] }
          }
        },
        async save(definition) {
          if (!isDeepStrictEqual(toStatement(await get()), toStatement(before)))
            throw new GatewayError('config-conflict', `${name} was changed by another user since it was opened`)
          return request(
            `Connecting ${toVisible(name)}`,
            (client, spinner) =>
              showingStart({ client, spinner }, { name, scope }, () =>
                client.servers.change({ params: { name }, query: { scope }, body: { definition, keepLiteral } }),
              ),
            patience.connecting,
          )
        },
      })
      if (server) return showChange(context, server)
      if (terminal.json) terminal.answer(before, () => '')
      return exit.done
    },
  })
}

/** The values set in this scope, without inherited values and defaults. */
function toStatement({ definition, origins, scope }: Pick<ServerDetail, 'definition' | 'origins' | 'scope'>): object {
  const own = toOwn(definition, (key) => origins[key] === scope)
  const named = Object.entries(own).filter(([key]) => ['transport', 'command', 'url'].includes(key))
  const minimal = ServerDefinition.safeParse(Object.fromEntries(named)).data
  if (!minimal) return own
  // The gateway sets `trust` by scope; all other defaults come from the schema.
  const defaults: Record<string, unknown> = { trust: 'annotations', ...minimal }
  const isNamed = new Set(named.map(([key]) => key))
  const told = Object.entries(own).filter(
    ([key, value]) => isNamed.has(key) || !isDeepStrictEqual(value, defaults[key]),
  )
  return Object.fromEntries(told)
}

function toOwn(value: unknown, isOwn: (key: string) => boolean, prefix = ''): Record<string, unknown> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
      const key = `${prefix}${name}`
      if (!isObject(inner)) return isOwn(key) ? [[name, inner]] : []
      const kept = toOwn(inner, isOwn, `${key}.`)
      return Object.keys(kept).length > 0 || (isOwn(key) && Object.keys(inner).length === 0) ? [[name, kept]] : []
    }),
  )
}

function toFileName(name: string): string {
  return name.replace(/[^\w.-]/g, '_')
}
