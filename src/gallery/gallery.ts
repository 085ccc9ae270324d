import type { ConfigStore } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type {
  GalleryConnection,
  GalleryDetail,
  GalleryEntry,
  GalleryPlan,
  GallerySummary,
  GalleryVariable,
  PlannedVariable,
} from '../contract/gallery.ts'
import type { Principal } from '../contract/principal.ts'
import { type ScopeKey, toScope } from '../contract/scope.ts'
import type { ServerDefinition, ServerDetail } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import { nearest } from '../lib/text.ts'
import type { Secrets, WantedSecret } from '../secrets/secrets.ts'
import type { ServerService } from '../servers/servers.ts'
import { fill } from './fill.ts'
import { search } from './search.ts'

export type GalleryParts = {
  readonly config: Pick<ConfigStore, 'current' | 'readsVariable' | 'statedIn'>
  readonly servers: Pick<ServerService, 'add' | 'checkAdd'>
  readonly secrets: Pick<Secrets, 'lookUp' | 'set' | 'remove'>
}

export type GalleryChoice = {
  readonly id: string
  /** Name of the server. Default: the id. */
  readonly name?: string | undefined
  /** Default: the first way to connect. */
  readonly connection?: string | undefined
  readonly scope?: ScopeKey | undefined
  /** Values of variables, also of secrets. */
  readonly values?: Readonly<Record<string, string>> | undefined
}

/** Known MCP servers, and what is needed to add them. */
export type Gallery = {
  list(by: Principal, wanted?: { readonly search?: string | undefined }): Promise<GallerySummary[]>
  get(by: Principal, id: string): Promise<GalleryDetail>
  /** What would be added, and which values are missing. Changes nothing. */
  plan(by: Principal, choice: GalleryChoice): Promise<GalleryPlan>
  /** Stores the given secrets and adds the server. Throws `values-missing`. */
  add(by: Principal, choice: GalleryChoice): Promise<ServerDetail>
}

export function createGallery({ config, servers, secrets }: GalleryParts): Gallery {
  return { list, get, plan: async (by, choice) => toPlan(await prepare(by, choice)), add }

  /** Entries of the operator replace built-in entries of the same id. */
  async function load(): Promise<ReadonlyMap<string, GalleryDetail>> {
    // Loaded at first use: most starts of the program do not need the data.
    const { builtIn } = await import('./data.ts')
    const all = new Map<string, GalleryDetail>()
    for (const [id, entry] of builtIn) all.set(id, { ...entry, own: false })
    for (const [id, entry] of Object.entries(config.current().gallery)) all.set(id, { id, ...entry, own: true })
    return all
  }

  async function list(_by: Principal, wanted: { search?: string | undefined } = {}): Promise<GallerySummary[]> {
    const entries = await load()
    return search([...entries.values()], wanted.search ?? '').map(toSummary)
  }

  async function get(_by: Principal, id: string): Promise<GalleryDetail> {
    const entries = await load()
    const entry = entries.get(id)
    if (entry !== undefined) return entry
    const meant = nearest(id, [...entries.keys()])
    const suggestion = meant === undefined ? '' : `. Did you mean ${meant}?`
    throw new GatewayError('not-found', `The gallery has no entry ${id}${suggestion}`, {
      ...(meant !== undefined && { suggestion: meant }),
    })
  }

  async function prepare(by: Principal, choice: GalleryChoice): Promise<Prepared> {
    const entry = await get(by, choice.id)
    const { name = entry.id, scope = 'global', values = {} } = choice
    const connection = findConnection(entry, choice.connection)
    demandKnown(connection, values)
    const filling = { entry, connection, values, mayChooseRisk: by.role === 'administrator' }
    const draft = fill({ ...filling, variables: connection.variables.map((each) => toDraft(each, values)) })
    // The rights are checked before anything is said about existing secrets.
    servers.checkAdd(by, { name, scope, definition: isOpen(draft) ? undefined : draft })
    const use = { scope, server: name, definition: draft }
    const variables = connection.variables.map((variable) => stateOf(variable, values, use))
    const missing = variables.filter(isMissing).map((variable) => variable.name)
    const definition = missing.length === 0 ? fill({ ...filling, variables }) : undefined
    return { entry, name, scope, connection, values, variables, missing, definition }
  }

  function stateOf(variable: GalleryVariable, values: Values, use: Use): PlannedVariable {
    if (own(values, variable.name) !== undefined) return { ...variable, state: 'given' }
    const found = secrets.lookUp({ ...use, name: variable.name })
    if (found?.conflict !== undefined) return { ...variable, state: 'refused', because: found.conflict }
    if (found !== undefined || config.readsVariable(variable.name, use.scope)) return { ...variable, state: 'stored' }
    if (variable.default !== undefined) return { ...variable, state: 'default' }
    return { ...variable, state: variable.required ? 'missing' : 'unset' }
  }

  async function add(by: Principal, choice: GalleryChoice): Promise<ServerDetail> {
    const prepared = await prepare(by, choice)
    const { name, scope, definition } = prepared
    if (definition === undefined) throw valuesMissing(prepared)
    const stored: string[] = []
    try {
      for (const secret of toSecrets(prepared, definition)) {
        await secrets.set(by, secret)
        stored.push(secret.name)
      }
      return await servers.add(by, { name, scope, definition })
    } catch (error) {
      if (!isSaved(name, scope, error)) await Promise.all(stored.map((each) => secrets.remove(by, scope, each)))
      throw error
    }
  }

  /** The given secrets, bound to this server and to its host. An existing secret is never replaced. */
  function toSecrets(
    { name: server, scope, variables, values }: Prepared,
    definition: ServerDefinition,
  ): WantedSecret[] {
    const given = variables.filter(({ secret, state }) => secret && state === 'given').map(({ name }) => name)
    const existing = given.find((name) => secrets.lookUp({ name, scope, server, definition })?.scope === scope)
    if (existing !== undefined) throw secretExists(existing, scope)
    const hosts = definition.transport !== 'stdio' && URL.canParse(definition.url) ? [new URL(definition.url).host] : []
    return given.map((name) => ({
      scope,
      name,
      value: own(values, name) ?? '',
      hosts,
      servers: [server],
      onlyNew: true,
    }))
  }

  /** True if the server is in the configuration although `add` failed. Its secrets must stay. */
  function isSaved(name: string, scope: ScopeKey, error: unknown): boolean {
    if (error instanceof GatewayError && error.code === 'server-exists') return false
    return Object.hasOwn(config.statedIn(toScope(scope)).servers, name)
  }
}

type Values = Readonly<Record<string, string>>
type Use = { readonly scope: ScopeKey; readonly server: string; readonly definition: ServerDefinition }
type Prepared = {
  readonly entry: GalleryEntry
  readonly name: string
  readonly scope: ScopeKey
  readonly connection: GalleryConnection
  readonly values: Values
  readonly variables: readonly PlannedVariable[]
  readonly missing: readonly string[]
  /** Undefined while values are missing. */
  readonly definition: ServerDefinition | undefined
}

/** The state without looking at secrets: a template stays where a value may be missing. */
function toDraft(variable: GalleryVariable, values: Values): PlannedVariable {
  if (own(values, variable.name) !== undefined) return { ...variable, state: 'given' }
  return { ...variable, state: variable.default === undefined ? 'stored' : 'default' }
}

/** Whether the address still contains a template, so that its host is unknown. */
function isOpen(definition: ServerDefinition): boolean {
  return definition.transport !== 'stdio' && definition.url.includes('${')
}

function isMissing({ required, state }: PlannedVariable): boolean {
  return state === 'missing' || (state === 'refused' && required)
}

function findConnection({ id, connections }: GalleryEntry, wanted: string | undefined): GalleryConnection {
  const found = wanted === undefined ? connections[0] : connections.find((connection) => connection.id === wanted)
  if (found !== undefined) return found
  const known = connections.map((connection) => connection.id).join(', ')
  throw new GatewayError('request-invalid', `${id} has no connection ${wanted}; it has: ${known}`, {
    field: 'connection',
  })
}

function demandKnown({ variables }: GalleryConnection, values: Values): void {
  const known = variables.map(({ name }) => name)
  const unknown = Object.keys(values).filter((name) => !known.includes(name))
  if (unknown.length === 0) return
  const names = known.length === 0 ? 'this connection needs no values' : `known: ${known.join(', ')}`
  throw new GatewayError('request-invalid', `No variable is named ${unknown.join(', ')}; ${names}`, { field: 'values' })
}

function toPlan(prepared: Prepared): GalleryPlan {
  const { entry, name, scope, connection, variables, missing, definition } = prepared
  return {
    id: entry.id,
    name,
    scope,
    connection: connection.id,
    variables: [...variables],
    missing: [...missing],
    ...(definition && { definition }),
    notes: toNotes(prepared),
  }
}

function toNotes({ entry, connection }: Prepared): string[] {
  const isOauthOnly = connection.auth.length > 0 && connection.auth.every(({ kind }) => kind === 'oauth')
  return [
    ...(isOauthOnly ? [oauthNote] : []),
    ...[connection.note, entry.risk.note].filter((note): note is string => note !== undefined),
  ]
}

const oauthNote =
  'This server signs in with OAuth, which this version of Sallyport does not support. The server is saved, and its state is auth-required.'

function toSummary(entry: GalleryDetail): GallerySummary {
  const { id, title, purpose, category, vendor, official, own: isOwn, connections } = entry
  return {
    ...{ id, title, purpose, category, official, own: isOwn },
    ...(vendor !== undefined && { vendor }),
    connections: connections.map((connection) => ({
      id: connection.id,
      title: connection.title,
      transport: connection.transport,
    })),
  }
}

function valuesMissing({ entry, connection, variables, missing }: Prepared): GatewayError {
  const wanted = variables.filter(({ name }) => missing.includes(name))
  const texts = wanted.map(({ name, because }) =>
    because === undefined ? name : `${name} (a secret exists, but ${because})`,
  )
  const message = `${entry.title} (${connection.id}) needs values for: ${texts.join(', ')}`
  return new GatewayError('values-missing', message, { missing: wanted })
}

function secretExists(name: string, scope: ScopeKey): GatewayError {
  const message = `A secret ${name} exists in ${scope} and is not replaced. Leave out its value to use it, or change it first`
  return new GatewayError('name-taken', message, { name })
}
