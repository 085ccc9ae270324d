import type { AddedServer, ConfigStore, Seal } from '../config/config.ts'
import { seesDefinition } from '../config/config.ts'
import { classOf } from '../contract/access.ts'
import type { ClientName } from '../contract/client.ts'
import { clientTitles } from '../contract/client.ts'
import type { ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { ImportedServer, ImportResult } from '../contract/import.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { globalScope, type Scope, type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import { own } from '../documents/values.ts'
import { readShapes, type ShapesReading } from '../formats/formats.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { type MovedEntries, type MoveLiterals, type Ownership, type Secrets, usableScopes } from '../secrets/secrets.ts'
import type { Servers } from '../servers/servers.ts'
import { listNeeds } from './needs.ts'
import { leadsToGateway } from './own.ts'
import { type PlannedServer, planServers, toShown } from './plan.ts'
import { readImportText } from './text.ts'

export type ImportRequest = {
  /** JSON, YAML or TOML. */
  readonly text: string
  readonly scope?: ScopeKey | undefined
  /** The program that the text belongs to. Without it, the program is recognised. */
  readonly client?: ClientName | undefined
}

export type ImportChoices = ImportRequest & {
  /** The hash of the preview. */
  readonly hash: string
  /** Names of existing servers that are replaced by other definitions. */
  readonly replace?: readonly string[] | undefined
  /** Variables that are added to the list `environment`. Only administrators may. */
  readonly environment?: readonly string[] | undefined
}

/** Servers from a text in the form of another program or platform. */
export type ImportService = {
  /** What `apply` would do. Starts, resolves, reads and contacts nothing. */
  preview(by: Principal, request: ImportRequest): ImportResult
  /** Saves the new servers in one change. Returns after the first attempt to connect to each. */
  apply(by: Principal, choices: ImportChoices): Promise<ImportResult>
}

export type ImportParts = {
  readonly config: ConfigStore
  readonly secrets: Pick<Secrets, 'list'>
  readonly owners: Pick<Ownership, 'ownerOf' | 'trusts'>
  readonly servers: Pick<Servers, 'settled' | 'find'>
  readonly moveLiterals: MoveLiterals
  readonly seal: Seal
  demandCurrent(principal: Principal): void
}

type Plan = {
  readonly reading: ShapesReading
  readonly servers: readonly PlannedServer[]
  /** Everything that the plan depends on, except the text. */
  readonly basis: string
  readonly hash: string
}

const mostServers = 200
const settleMs = 150_000

export function createImports(parts: ImportParts): ImportService {
  const { config, secrets, owners, seal } = parts

  return {
    preview(by, request) {
      const plan = makePlan(by, request)
      return toResult(by, plan, plan.servers.map(toShown), plan.servers)
    },
    apply,
  }

  function makePlan(by: Principal, { text, scope: wanted, client }: ImportRequest): Plan {
    parts.demandCurrent(by)
    const scope = toTarget(by, wanted, config)
    const reading = read(text, client)
    const servers = planServers({ config, sees: (key) => sees(by, key), isOwn }, by, {
      servers: reading.servers,
      scope,
    })
    const basis = toBasis(scope, servers)
    const hash = seal.make(toCanonicalText(['import', toPrincipalKey(by), client ?? '', text, basis]))
    return { reading, servers, basis, hash }
  }

  function sees(by: Principal, key: ScopeKey): boolean {
    const scope = toScope(key)
    return seesDefinition(by, { scope, owner: config.ownerOf(scope) }, config.current())
  }

  function isOwn(definition: ScopedServer): boolean {
    return leadsToGateway(definition, config.current().listen)
  }

  /** The plan, and the servers that it was made for. */
  function toBasis(scope: Scope, servers: readonly PlannedServer[]): string {
    const scopes = new Map([scope, ...servers.map((server) => server.scope)].map((each) => [toScopeKey(each), each]))
    const existing = [...scopes].map(([key, each]) => [
      key,
      config.statedIn(each).servers,
      [...config.inheritedIn(each).servers.values()].map(({ name, definition }) => [name, definition]),
    ])
    const planned = servers.map(({ name, scope: into, outcome, stated = null }) => [
      name,
      toScopeKey(into),
      outcome,
      stated,
    ])
    return toCanonicalText(JSON.parse(JSON.stringify([toScopeKey(scope), planned, existing, config.current().members])))
  }

  function toResult(
    by: Principal,
    { reading, hash }: Plan,
    shown: readonly ImportedServer[],
    needing: readonly PlannedServer[],
  ): ImportResult {
    const stored = secrets.list(by)
    const needs = listNeeds(needing, {
      findSecret: (scope, name) =>
        usableScopes(scope, owners).find((place) => stored.some((each) => each.scope === place && each.name === name)),
      isListed: (name) => config.readsVariable(name, 'global') || config.current().environment.includes(name),
      trusts: (scope) => config.trusts(scope),
    })
    return {
      hash,
      from: [...reading.from],
      servers: [...shown],
      reported: reading.reported.map(({ key, message }) => ({ key, message })),
      secrets: [...needs.secrets],
      variables: [...needs.variables],
    }
  }

  async function apply(by: Principal, choices: ImportChoices): Promise<ImportResult> {
    const plan = makePlan(by, choices)
    if (plan.hash !== choices.hash) throw changed()
    const chosen = choose(plan.servers, choices.replace ?? [])
    const environment = chooseVariables(by, plan, choices.environment ?? [])
    const judge = (): void => {
      if (makePlan(by, choices).basis !== plan.basis) throw changed()
    }
    judge()
    const moved = await move(by, chosen)
    try {
      if (chosen.length + environment.length > 0) {
        const edit = { kind: 'add-servers' as const, servers: moved.added, environment, from: plan.reading.from }
        await config.change(edit, { by, judge })
      }
    } catch (error) {
      await moved.undo()
      throw error
    }
    const saved = new Map(chosen.map((server, index) => [server, moved.added[index]?.definition]))
    const now = plan.servers.map((server) => ({ ...server, stated: saved.get(server) ?? server.stated }))
    const shown = await Promise.all(
      plan.servers.map((server, index) => toSaved(now[index] ?? server, saved.has(server))),
    )
    const result = toResult(by, plan, shown, now)
    return moved.warnings.length === 0 ? result : { ...result, warnings: [...moved.warnings] }
  }

  /** The new servers, and those of `replace`. */
  function choose(servers: readonly PlannedServer[], replace: readonly string[]): PlannedServer[] {
    const unknown = replace.filter((name) => !servers.some((each) => each.name === name && each.outcome === 'changed'))
    if (unknown.length > 0) {
      const message = `The import would not replace ${unknown.join(', ')}: name servers with the outcome changed`
      throw new GatewayError('request-invalid', message, { unknown })
    }
    return servers.filter(({ name, outcome }) => outcome === 'new' || (outcome === 'changed' && replace.includes(name)))
  }

  /** Every server of a trusted scope can read the variables of this list. */
  function chooseVariables(by: Principal, plan: Plan, names: readonly string[]): readonly string[] {
    if (names.length === 0) return []
    if (by.role !== 'administrator') {
      throw new GatewayError('forbidden', 'Only administrators can add variables to the list `environment`')
    }
    const { variables } = toResult(by, plan, [], plan.servers)
    const wanted = variables.filter(({ listed }) => !listed).map(({ name }) => name)
    const unknown = names.filter((name) => !wanted.includes(name))
    if (unknown.length === 0) return names
    const message = `The import does not need ${unknown.join(', ')} in the list \`environment\``
    throw new GatewayError('request-invalid', message, { unknown })
  }

  type Moved = { readonly added: readonly AddedServer[]; readonly warnings: readonly string[]; undo(): Promise<void> }

  /** Stores the secrets first: a definition that is saved must find them. */
  async function move(by: Principal, chosen: readonly PlannedServer[]): Promise<Moved> {
    const entries: MovedEntries<ScopedServer>[] = []
    const undo = async (): Promise<void> => {
      for (const each of entries) await each.undo()
    }
    const definitions = new Map<PlannedServer, ScopedServer>()
    try {
      for (const key of new Set(chosen.map(({ scope }) => toScopeKey(scope)))) {
        const here = chosen.filter(({ scope }) => toScopeKey(scope) === key)
        const servers = Object.fromEntries(here.map(({ name, stated }) => [name, stated ?? {}]))
        const moved = await parts.moveLiterals(by, { scope: key, servers })
        entries.push(moved)
        for (const server of here) definitions.set(server, own(moved.servers, server.name) ?? {})
      }
    } catch (error) {
      await undo()
      throw error
    }
    const added = chosen.map((server): AddedServer => {
      const { name, scope, outcome } = server
      return { name, scope, definition: definitions.get(server) ?? {}, replaces: outcome === 'changed' }
    })
    return { added, warnings: entries.flatMap(({ warnings }) => warnings), undo }
  }

  /** Waits for the first attempt to connect. */
  async function toSaved(planned: PlannedServer, saved: boolean): Promise<ImportedServer> {
    const shown = toShown(planned)
    if (!saved) return { ...shown, saved }
    const entry = config.effectiveIn(planned.scope).servers.get(planned.name)
    if (entry === undefined) return { ...shown, saved }
    // The connection may be in use by another scope, where the server is enabled.
    if (!entry.definition.enabled) return { ...shown, saved, state: 'disabled' }
    const { connection } = entry
    if (!parts.servers.find(connection)) return { ...shown, saved }
    await parts.servers.settled(connection, AbortSignal.timeout(settleMs))
    const status = parts.servers.find(connection)
    return {
      ...shown,
      saved,
      ...(status && { state: status.state }),
      ...(status?.error && { error: status.error.message }),
    }
  }
}

function read(text: string, client: ClientName | undefined): ShapesReading {
  const reading = readShapes(readImportText(text), client)
  if (reading.from.length === 0) {
    throw new GatewayError(
      'import-unrecognised',
      `The text has no list of servers in a known form. Known are ${knownForms}`,
    )
  }
  if (reading.servers.length > mostServers) {
    const message = `The text has ${reading.servers.length} servers; an import may have ${mostServers}. Import them in parts`
    throw new GatewayError('import-unreadable', message)
  }
  return reading
}

const forms = [
  'mcpServers',
  'mcp_servers',
  'enabledTools.mcp_servers',
  'mcp_connectors',
  'config.servers',
  'defaults.mcp and agents.mcp',
  'servers of sallyport.yaml',
]
const knownForms = `the files of ${Object.values(clientTitles).join(', ')}, and ${forms.join(', ')}`

/** Members import for themselves. Administrators choose the scope; the default is the global scope. */
function toTarget(by: Principal, wanted: ScopeKey | undefined, config: ConfigStore): Scope {
  const ownScope: Scope = { kind: 'user', name: by.name }
  if (by.kind !== 'user' || by.role === 'auditor')
    throw new GatewayError('forbidden', 'You are not allowed to import servers')
  if (by.role !== 'administrator') {
    if (wanted === undefined || wanted === 'user:me' || wanted === toScopeKey(ownScope)) return ownScope
    throw new GatewayError('forbidden', `You can only import servers into your own scope, ${toScopeKey(ownScope)}`)
  }
  if (wanted === 'user:me' && classOf(by) === 'token-file') {
    throw new GatewayError('request-invalid', 'user:me needs a signed-in user; with the admin token, name the user')
  }
  const scope = wanted === undefined ? globalScope : wanted === 'user:me' ? ownScope : toScope(wanted)
  if (scope.kind === 'session' || scope.kind === 'automation') {
    throw new GatewayError('request-invalid', `Servers cannot be imported into a scope of kind ${scope.kind}`)
  }
  if (scope.kind === 'project' && !Object.hasOwn(config.current().projects, scope.name)) {
    throw new GatewayError('request-invalid', `No project is named ${scope.name}`)
  }
  return scope
}

function changed(): GatewayError {
  return new GatewayError('import-changed', 'The text or the servers of the gateway have changed since the preview')
}
