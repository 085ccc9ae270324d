import { z } from 'zod'
import { GatewayError } from '../../../contract/errors.ts'
import { GalleryId, type GalleryPlan, type PlannedVariable } from '../../../contract/gallery.ts'
import { RegistryName, RegistryVersion } from '../../../contract/registry.ts'
import type { ScopeKey } from '../../../contract/scope.ts'
import type { ServerDetail } from '../../../contract/server.ts'
import { toVisible } from '../../../shared/visible.ts'
import { readHidden, readLine } from '../../terminal/hidden-input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { type Context, type OptionSpec, patience } from '../command.ts'
import { describeVariable } from '../gallery.ts'
import { showingStart } from './start-progress.ts'

/** Options of `servers add` for a server of the gallery. */
export const galleryOptions: readonly OptionSpec[] = [
  ['--from-gallery [id]', 'add this entry of the gallery; without an id, the entry with the name of the server'],
  ['--connection <id>', 'way to connect, if the entry has several'],
  ['--from-registry <name>', 'add this server of the registry, such as io.github.NAME/SERVER; needs --version'],
  ['--version <version>', 'exact version of the server of the registry'],
  ['--set <value>', 'NAME=VALUE of a variable of the entry that is no secret; can be repeated', 'many'],
  ['--secrets-stdin', 'read secrets of the entry from standard input, one NAME=VALUE per line'],
]

export const GalleryInput = z.object({
  fromGallery: z.union([z.string(), z.boolean()]).optional(),
  fromRegistry: RegistryName.optional(),
  version: RegistryVersion.optional(),
  connection: z.string().optional(),
  set: z.array(z.string()),
  secretsStdin: z.boolean().default(false),
})
export type GalleryInput = z.infer<typeof GalleryInput>

/** Where the server comes from: an entry of the gallery by its id, or a version of a server of the registry. */
export type Source =
  | { readonly kind: 'gallery'; readonly id: string }
  | { readonly kind: 'registry'; readonly server: string; readonly version: string }

/** The source that the options name; the entry with the name of the server if they name none. */
export function findSource(name: string, { fromGallery, fromRegistry, version }: GalleryInput): Source | undefined {
  if (fromRegistry !== undefined) {
    if (version !== undefined && fromGallery === undefined) return { kind: 'registry', server: fromRegistry, version }
    const wrong = version === undefined ? 'needs --version with an exact version' : 'cannot be used with --from-gallery'
    throw new GatewayError('request-invalid', `--from-registry ${wrong}`)
  }
  if (version !== undefined) throw new GatewayError('request-invalid', '--version needs --from-registry')
  const id = typeof fromGallery === 'string' ? fromGallery : name
  return GalleryId.safeParse(id).success ? { kind: 'gallery', id } : undefined
}

export function usesGallery({ connection, set, secretsStdin, ...named }: GalleryInput): boolean {
  const isNamed = [named.fromGallery, named.fromRegistry, named.version, connection].some(
    (option) => option !== undefined,
  )
  return isNamed || set.length > 0 || secretsStdin
}

type Wanted = { readonly name: string; readonly source: Source; readonly scope: ScopeKey | undefined }
type Values = Record<string, string>

/** Asks for the values that are missing, and adds the server. */
export async function addFromGallery(context: Context, wanted: Wanted, input: GalleryInput): Promise<ServerDetail> {
  const { terminal, request } = context
  const { name, source, scope } = wanted
  const body = { name, scope, connection: input.connection }
  const given = { ...toPairs(input.set, '--set'), ...(await readSecrets(context, input)) }
  const plan = await request(source.kind === 'gallery' ? 'Reading the gallery' : 'Reading the registry', (client) =>
    source.kind === 'gallery'
      ? client.gallery.plan({ params: { id: source.id }, body: { ...body, values: given } })
      : client.registry.plan({ ...body, server: source.server, version: source.version, values: given }),
  )
  demandNoSecretArgument(plan, input)
  tellStored(terminal, plan)
  const values = { ...given, ...(await askMissing(terminal, plan)) }
  return request(
    `Connecting ${toVisible(name)}`,
    (client, spinner) =>
      showingStart({ client, spinner }, { name, scope }, () =>
        source.kind === 'gallery'
          ? client.gallery.add({ params: { id: source.id }, body: { ...body, values } })
          : client.registry.add({ ...body, server: source.server, version: source.version, values }),
      ),
    patience.connecting,
  )
}

/** Arguments are visible to other users of the machine, and stay in the history of the shell. */
function demandNoSecretArgument({ variables }: GalleryPlan, { set }: GalleryInput): void {
  const named = Object.keys(toPairs(set, '--set'))
  const secret = variables.find((variable) => variable.secret && named.includes(variable.name))
  if (secret === undefined) return
  const ways = 'leave it out to be asked for it, or use --secrets-stdin'
  throw new GatewayError('request-invalid', `--set: ${secret.name} is a secret and cannot be an argument; ${ways}`)
}

function tellStored(terminal: Terminal, { variables, notes }: GalleryPlan): void {
  for (const { name, state } of variables) if (state === 'stored') terminal.talk(`Uses the existing value of ${name}.`)
  const unset = variables.filter(({ state }) => state === 'unset').map(({ name }) => name)
  if (unset.length > 0) terminal.talk(`Optional values that are not set: ${unset.join(', ')}`)
  for (const note of notes) terminal.talk(toVisible(note))
}

async function askMissing(terminal: Terminal, plan: GalleryPlan): Promise<Values> {
  const missing = plan.variables.filter(({ name }) => plan.missing.includes(name))
  if (missing.length === 0) return {}
  if (!terminal.interactive || missing.some(({ state }) => state === 'refused')) throw valuesMissing(plan, missing)
  const values: Values = {}
  for (const variable of missing) {
    terminal.talk(describeVariable(variable))
    const question = `${variable.title} (${variable.name})`
    values[variable.name] = variable.secret ? await readHidden(terminal, question, 'line') : await readLine(question)
  }
  return values
}

function valuesMissing({ id, connection }: GalleryPlan, missing: readonly PlannedVariable[]): GatewayError {
  const lines = missing.map((variable) => {
    const { because } = variable
    return `  ${describeVariable(variable)}${because === undefined ? '' : `. A secret exists, but ${because}`}`
  })
  const ways = missing.some(({ secret }) => secret)
    ? 'Give secrets with --secrets-stdin or `sallyport secrets set NAME`, other values with --set NAME=VALUE.'
    : 'Give the values with --set NAME=VALUE.'
  return new GatewayError('values-missing', [`${id} (${connection}) needs values for:`, ...lines, ways].join('\n'), {
    missing,
  })
}

async function readSecrets({ terminal, settings, address }: Context, { secretsStdin }: GalleryInput): Promise<Values> {
  if (!secretsStdin) return {}
  if (terminal.interactive) throw new GatewayError('request-invalid', '--secrets-stdin: standard input is a terminal')
  // Sign in first: the password is the first line of standard input.
  if (settings.person) await address()
  const text = await readHidden(terminal, 'Secrets', 'rest')
  return toPairs(text.split(/\r?\n/).filter(Boolean), '--secrets-stdin')
}

/** Errors contain no text of a pair, because it may be a secret. */
function toPairs(pairs: readonly string[], option: string): Values {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new GatewayError('request-invalid', `${option}: must be NAME=VALUE`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}
