import { existsSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../../contract/api/base.ts'
import { GatewayError } from '../../../contract/errors.ts'
import type { ScopeKey } from '../../../contract/scope.ts'
import type { ServerDefinition, ServerDetail } from '../../../contract/server.ts'
import { hasHints } from '../../../contract/tool.ts'
import { toVisible } from '../../../shared/visible.ts'
import { toRunnable } from '../../terminal/connect-line.ts'
import { exit } from '../../terminal/exit.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { addCommand, type Context, type OptionSpec, patience, type Run } from '../command.ts'
import { suggesting } from '../suggest.ts'
import {
  DefinitionInput,
  definitionOptions,
  describeOneWay,
  hasDefinition,
  isDescribed,
  toDefinition,
} from './definition.ts'
import { addFromGallery, findSource, GalleryInput, galleryOptions, type Source, usesGallery } from './from-gallery.ts'
import { renderValidation, showChange } from './server-view.ts'
import { showingStart, showingTrial } from './start-progress.ts'

export const keepLiteralOption: OptionSpec = [
  '--keep-literal',
  'keep secrets in the configuration file instead of the secret store; administrators only',
]

const scopeOption: OptionSpec = [
  '--scope <scope>',
  'scope of the server: global (default), user:me, project:NAME or agent:NAME',
]

export function addServersAdd(servers: Command, run: Run): void {
  addCommand(servers, run, {
    use: 'add <name>',
    takesCommand: true,
    summary: 'add a server: an entry of the gallery, --url with an address, or a command after --',
    options: [...definitionOptions, ...galleryOptions, scopeOption, keepLiteralOption],
    notes: [
      'Without an address and a command, the name is the id of an entry of the gallery (`sallyport gallery list`). The',
      'command asks only for values that are missing. Secrets are read from a hidden prompt or from standard input.',
    ],
    examples: [
      'sallyport servers add github',
      'sallyport servers add notes --from-registry io.github.example/notes --version 1.2.3',
      'sallyport servers add filesystem --set FILESYSTEM_FOLDER=/srv/documents',
      'sallyport servers add docs --url https://mcp.example.com/mcp',
      "sallyport servers add github --url https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer ${GITHUB_TOKEN}'",
      'sallyport servers add files --env LOG_LEVEL=warn -- npx -y @modelcontextprotocol/server-filesystem /srv/docs',
      'sallyport servers add notes --scope user:me --url https://notes.example.com/mcp',
      `sallyport servers add memory --from-json '{"command":"npx","args":["-y","@modelcontextprotocol/server-memory"]}'`,
    ],
    input: DefinitionInput.extend({
      name: z.string(),
      scope: ScopeText.optional(),
      keepLiteral: z.boolean().optional(),
      ...GalleryInput.shape,
    }),
    async run(context, { name, scope, keepLiteral, ...input }) {
      const source = isDescribed(input) ? undefined : findSource(name, input)
      if (source !== undefined) return addEntry(context, { name, source, scope }, input)
      if (usesGallery(input)) throw new GatewayError('request-invalid', conflicting)
      const definition = inFolderOf(context, toDefinition(input))
      const server = await context.request(
        `Connecting ${toVisible(name)}`,
        (client, spinner) =>
          showingStart({ client, spinner }, { name, scope }, () =>
            client.servers.add({ name, definition, scope, keepLiteral }),
          ),
        patience.connecting,
      )
      if (definition.transport === 'stdio') context.terminal.talk(rightsNote)
      tellUnannotated(context.terminal, server)
      return showChange(context, server)
    },
  })
}

const conflicting =
  '--from-gallery, --from-registry, --version, --connection, --set and --secrets-stdin cannot be used with a definition'

async function addEntry(
  context: Context,
  wanted: { readonly name: string; readonly source: Source; readonly scope: ScopeKey | undefined },
  input: GalleryInput,
): Promise<number> {
  const server = await addFromGallery(context, wanted, input).catch((error: unknown) => {
    const isUnknown = error instanceof GatewayError && error.code === 'not-found' && input.fromGallery === undefined
    throw isUnknown ? new GatewayError('request-invalid', `${error.message}\n${describeOneWay}`) : error
  })
  if (server.transport === 'stdio') context.terminal.talk(rightsNote)
  tellUnannotated(context.terminal, server)
  return showChange(context, server)
}

export function addServersValidate(servers: Command, run: Run): void {
  addCommand(servers, run, {
    use: 'validate [name]',
    takesCommand: true,
    summary: 'test the connection to a saved server, or to a definition without saving it',
    options: [
      ...definitionOptions,
      ['--scope <scope>', 'scope of the saved server, if several scopes have this name, or of the definition'],
    ],
    examples: [
      'sallyport servers validate files',
      'sallyport servers validate --url https://mcp.example.com/mcp',
      'sallyport servers validate -- npx -y @modelcontextprotocol/server-memory',
    ],
    input: DefinitionInput.extend({ name: z.string().optional(), scope: ScopeText.optional() }),
    async run(context, { name, scope, ...input }) {
      const { terminal } = context
      const definition = hasDefinition(input) ? inFolderOf(context, toDefinition(input)) : undefined
      const validation = await context.request(
        `Testing ${toVisible(name ?? 'the definition')}`,
        (client, spinner) => {
          if (definition) return showingTrial(spinner, definition, () => client.servers.validate({ definition, scope }))
          if (name === undefined)
            throw new GatewayError(
              'request-invalid',
              'The server is missing: name a saved server, or give --url, --from-json or -- COMMAND',
            )
          return suggesting(client, name, () => client.servers.validateSaved({ params: { name }, query: { scope } }))
        },
        patience.connecting,
      )
      terminal.answer(validation, () => renderValidation(terminal, validation))
      if (validation.ok && hasDefinition(input)) terminal.next(`sallyport servers add ${name ?? 'NAME'} …`)
      return validation.ok ? exit.done : exit.failed
    },
  })
}

/**
 * The gateway starts a command in another working folder, where a relative path would be wrong. If the command names a
 * file in the current folder, the current folder becomes its `cwd`.
 */
function inFolderOf({ terminal, settings }: Context, definition: ServerDefinition): ServerDefinition {
  if (definition.transport !== 'stdio' || settings.url !== undefined) return definition
  if (definition.cwd !== undefined) return { ...definition, cwd: resolve(definition.cwd) }
  const paths = [...(/[\\/]/.test(definition.command) ? [definition.command] : []), ...definition.args]
  const found = paths.find((path) => !path.startsWith('-') && !isAbsolute(path) && existsSync(resolve(path)))
  if (found === undefined) return definition
  terminal.talk(
    `${toVisible(found)} is in the current folder, so the command will run there (cwd: ${toVisible(process.cwd())}).`,
  )
  return { ...definition, cwd: process.cwd() }
}

/** Tools without annotations require approval for every call. People who approve many reads stop checking them. */
function tellUnannotated(terminal: Terminal, { name, tools }: ServerDetail): void {
  const silent = tools.filter(({ riskFrom, annotations }) => riskFrom === 'default' && !hasHints(annotations))
  if (silent.length === 0) return
  const asking = silent.some(({ risk }) => risk !== 'read') ? ', so every call of these tools requires approval' : ''
  terminal.talk(
    `${silent.length} of ${tools.length} tools have no annotations${asking}.\n` +
      toRunnable(
        `Suggest risks from their names and descriptions: sallyport servers risks ${toVisible(name)} --suggest`,
      ),
  )
}

const rightsNote = 'Note: the command runs with the rights of the gateway and can read its files.'
