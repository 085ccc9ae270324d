import type { ConfigStore } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { GalleryConnection, GalleryPlan, GalleryVariable, PlannedVariable } from '../contract/gallery.ts'
import type { Principal } from '../contract/principal.ts'
import { type ScopeKey, toScope } from '../contract/scope.ts'
import type { ServerDefinition, ServerDetail } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import type { Secrets, WantedSecret } from '../secrets/secrets.ts'
import type { ServerService } from '../servers/servers.ts'
import { type Fillable, fill } from './fill.ts'

export type AddingParts = {
  readonly config: Pick<ConfigStore, 'readsVariable' | 'statedIn'>
  readonly servers: Pick<ServerService, 'add' | 'checkAdd'>
  readonly secrets: Pick<Secrets, 'lookUp' | 'set' | 'remove'>
}

/** What to add, and where it comes from. */
export type Wanted = {
  readonly entry: Fillable
  /** Name of the server. */
  readonly name: string
  /** Default: the first way to connect. */
  readonly connection?: string | undefined
  readonly scope?: ScopeKey | undefined
  /** Values of variables, also of secrets. */
  readonly values?: Values | undefined
  /**
   * Whether existing secrets and environment variables may be used without naming them in the request. An entry that
   * nobody has reviewed could otherwise ask for the secret of another server by its name.
   */
  readonly usesExisting: boolean
}

export type Adding = {
  plan(by: Principal, wanted: Wanted): GalleryPlan
  add(by: Principal, wanted: Wanted): Promise<ServerDetail>
}

/** Turns an entry into a server with its secrets. */
export function createAdding({ config, servers, secrets }: AddingParts): Adding {
  return { plan: (by, wanted) => toPlan(prepare(by, wanted)), add }

  function prepare(by: Principal, wanted: Wanted): Prepared {
    const { entry, name, scope = 'global', values = {}, usesExisting } = wanted
    const connection = findConnection(entry, wanted.connection)
    demandKnown(connection, values)
    const filling = { entry, connection, values, mayChooseRisk: by.role === 'administrator' }
    const draft = fill({ ...filling, variables: connection.variables.map((each) => toDraft(each, values)) })
    // The rights are checked before anything is said about existing secrets.
    servers.checkAdd(by, { name, scope, definition: isOpen(draft) ? undefined : draft })
    const use = { scope, server: name, definition: draft, usesExisting }
    const variables = connection.variables.map((variable) => stateOf(variable, values, use))
    const missing = variables.filter(isMissing).map((variable) => variable.name)
    const definition = missing.length === 0 ? fill({ ...filling, variables }) : undefined
    return { entry, name, scope, connection, values, variables, missing, definition }
  }

  function stateOf(variable: GalleryVariable, values: Values, use: Use): PlannedVariable {
    if (own(values, variable.name) !== undefined) return { ...variable, state: 'given' }
    const found = use.usesExisting ? secrets.lookUp({ ...use, name: variable.name }) : undefined
    if (found?.conflict !== undefined) return { ...variable, state: 'refused', because: found.conflict }
    const isSet = use.usesExisting && config.readsVariable(variable.name, use.scope)
    if (found !== undefined || isSet) return { ...variable, state: 'stored' }
    if (variable.default !== undefined) return { ...variable, state: 'default' }
    return { ...variable, state: variable.required ? 'missing' : 'unset' }
  }

  async function add(by: Principal, wanted: Wanted): Promise<ServerDetail> {
    const prepared = prepare(by, wanted)
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
type Use = {
  readonly scope: ScopeKey
  readonly server: string
  readonly definition: ServerDefinition
  readonly usesExisting: boolean
}
type Prepared = {
  readonly entry: Fillable
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

function findConnection({ id, connections }: Fillable, wanted: string | undefined): GalleryConnection {
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
