import { createHmac } from 'node:crypto'
import {
  createApprovalServices,
  createApprovalStore,
  createApprovalsRemover,
  createGrantCache,
  createPinReview,
} from '../approvals/approvals.ts'
import { createAudit, toAuditSettings } from '../audit/audit.ts'
import { createCalls, createCallsRemover } from '../calls/calls.ts'
import {
  createCatalog,
  createIntroduction,
  createNames,
  createNamesRemover,
  type ViewSelector,
} from '../catalog/catalog.ts'
import { createChangeLimit, createConfig, createSeal, demandValid, toSharedConfig } from '../config/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import { type EventTable, eventNames } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import { createGallery } from '../gallery/gallery.ts'
import { createIdentity, type Identity, type PasswordCost } from '../identity/identity.ts'
import { createImports } from '../imports/imports.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { createEmitter } from '../lib/emitter.ts'
import { createIds, type Ids } from '../lib/ids.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { createMasking, type Masking } from '../masking/masking.ts'
import { createEventLog, createNotify, type NotifySettings } from '../notify/notify.ts'
import { createPinService, createPins, createPinsRemover } from '../pins/pins.ts'
import { createRuleService } from '../policy/policy.ts'
import { createProjectService } from '../projects/projects.ts'
import { createRemoval } from '../removal/removal.ts'
import { createRepositories } from '../repositories/repositories.ts'
import { createLiteralMover, createSecrets } from '../secrets/secrets.ts'
import { createServerFiles, type ServerFiles } from '../server-files/server-files.ts'
import {
  clearUp,
  createServerEntries,
  createServerEntriesRemover,
  createServerService,
  createServers,
  getJson,
  keepClearingUp,
  networkCredentials,
  type Posting,
  postJson,
  type SupervisionSettings,
} from '../servers/servers.ts'
import { createStatus } from '../status/status.ts'
import { assertSameAuditKey, loadAuditKeys } from '../storage/audit-key.ts'
import { createDataService } from '../storage/data.ts'
import { openStorage } from '../storage/storage.ts'
import type { Gateway } from './types.ts'
import { version } from './version.ts'

export type { Introduction } from '../catalog/catalog.ts'
export type { EventLog, LoggedEvent } from '../notify/notify.ts'
export type { ServerChange } from '../servers/servers.ts'
export type { Gateway } from './types.ts'
export { version } from './version.ts'

export type GatewayOptions = {
  /** The configuration file. */
  readonly configFile: string
  /** True if the configuration file was created for this start and contains no settings of the user. */
  readonly configIsNew?: boolean
  /** Files of the form `{"mcpServers": {...}}`; the first that exists is read. Its servers start after confirmation. */
  readonly serverFiles?: readonly string[]
  /** Folder for the database, the lock and the admin token. */
  readonly dataFolder: string
  /** PostgreSQL database that several instances can share, instead of the file in the data folder. It may contain a password. */
  readonly databaseUrl?: string | undefined
  readonly environment?: NodeJS.ProcessEnv
  readonly clock?: Clock
  readonly ids?: Ids
  readonly log?: Log
  /** Masks secrets. Pass the instance that the log uses, so that secrets are masked in the log too. */
  readonly masking?: Masking
  readonly supervision?: Partial<SupervisionSettings>
  /** Retries and limits of webhooks. */
  readonly notify?: Partial<NotifySettings>
  /** Cost of the hash of new passwords. Stored hashes contain their own cost. */
  readonly passwordCost?: PasswordCost
  /** Replaces `limits.grace`. */
  readonly graceMs?: number
}

/** Creates all parts, in the order of their dependencies. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { clock: machineClock = systemClock, log = silentLog, masking = createMasking() } = options
  let now = machineClock.now
  const ids = options.ids ?? createIds(() => now())
  const environment = options.environment ?? process.env
  const events = createEmitter<EventTable>((error) =>
    log.error({ error: toGatewayError(error).message }, 'unhandled error in an event listener'),
  )
  const { dataFolder: folder, databaseUrl } = options
  await demandValid(options.configFile) // before the data folder is touched: an invalid configuration refuses the start
  const auditKeys = await loadAuditKeys({ folder, environment })
  const storage = await openStorage({ folder, databaseUrl, clock: machineClock, ids, log, auditKey: auditKeys[0] })
  const { clock } = storage
  now = clock.now
  maskOwnSecrets(masking, environment, databaseUrl)
  if (storage.kind !== 'sqlite') await assertSameAuditKey(storage.documents, auditKeys).catch(closeStorage)
  await clearUp(storage, clock, log).catch(closeStorage)
  async function closeStorage(error: unknown): Promise<never> {
    await Promise.allSettled([storage.close()])
    throw error
  }
  let knownIdentity: Identity | undefined
  let knownFiles: ServerFiles | undefined
  let serversExist = false
  const seal = createSeal(auditKeys)
  const config = await createConfig({
    file: options.configFile,
    clock,
    log,
    environment,
    emit: events.emit,
    record: storage.configChanges,
    accepted: storage.acceptedFiles,
    seal,
    shared: toSharedConfig(storage, options.configIsNew ?? false),
    roster: () => knownIdentity?.roster() ?? { agents: [], sessions: [] },
    beneath: () => knownFiles?.inForce(),
    audit: storage.audit,
    // Servers that do not exist yet read the new values when they connect.
    onVariables: ({ connections }) => serversExist && reconnect(connections),
  }).catch(closeStorage)
  async function giveUp(error: unknown): Promise<never> {
    await Promise.allSettled([config.close()])
    return closeStorage(error)
  }
  const identity = await createIdentity({
    storage,
    folder: options.dataFolder,
    clock,
    ids,
    ...(options.passwordCost && { passwordCost: options.passwordCost }),
    firstPassword: environment.SALLYPORT_ADMIN_PASSWORD,
    configured: {
      hasAgent: (name) => Object.hasOwn(config.current().agents, name),
      findProjectOwners: (name) => findOwn(config.current().projects, name)?.owners,
      judgeServers: (by, session, servers) => serverService.judgeSession(by, session, servers),
      storeLiterals: (...wanted) => serverService.storeSessionLiterals(...wanted),
    },
  }).catch(giveUp)
  knownIdentity = identity
  config.restate()
  const serverFiles = await createServerFiles({
    files: options.serverFiles ?? [],
    storage,
    config,
    seal,
    clock,
    log,
    emit: events.emit,
    demandCurrent: identity.demandCurrent,
  }).catch(giveUp)
  knownFiles = serverFiles
  config.restate()
  const owners = {
    findUserId: (name: string) => identity.findId(`user:${name}`),
    ownsProject: (project: string, user: string) => config.current().projects[project]?.owners.includes(user) ?? false,
    ownerOf: (session: string) => config.ownerOf({ kind: 'session', name: session }),
    trusts: config.trusts,
  }
  const secrets = await createSecrets({
    storage,
    config,
    masking,
    folder: options.dataFolder,
    environment,
    owners,
    clock,
    ids,
    log,
    onChange: (connections) => reconnect(connections),
  }).catch(giveUp)
  const findUser = (name: string) =>
    identity.users.list().find((user) => user.name === name && user.disabledAt === undefined)
  const grantCache = await createGrantCache({ storage, findUser, log }).catch(giveUp)
  const pins = await createPins({ storage, clock, log, emit: events.emit, onChange: announceTools }).catch(giveUp)
  const findUserId = (name: string) => identity.findId(`user:${name}`)
  const names = await createNames({ storage, config, findUserId, clock, log, onChange: renameTools }).catch(giveUp)

  /** For addresses that only administrators can set, so private addresses are allowed. */
  const post = (posting: Pick<Posting, 'url' | 'body' | 'headers'>, signal: AbortSignal) =>
    postJson({ ...posting, signal, clock, egress: { privateAllowed: true, allow: config.current().egress.allow } })
  const getFromRegistry = (url: string, signal: AbortSignal) => {
    const egress = { privateAllowed: true, allow: config.current().egress.allow }
    return getJson({ url, mostBytes: 4_194_304, egress, clock, signal })
  }
  const audit = createAudit({
    storage,
    keys: auditKeys,
    folder,
    settings: () => toAuditSettings(config.current().audit, config.file),
    async post(url, body, signal) {
      await post({ url, body }, signal)
    },
    clock,
    log,
  })
  const servers = createServers({
    instance: storage.instance,
    version,
    folder,
    clock,
    log,
    children: storage.children,
    memory: storage.memory,
    limits: () => config.current().limits,
    ...(options.supervision && { supervision: options.supervision }),
    egressAllow: () => config.current().egress.allow,
    resolve: secrets.resolve,
    masking,
    onSecretFound: (connection, found) => tellFinding(connection, found),
    prepare: (id, lists) => catalog.prepare(id, lists),
    onChange: (id) => announceServer(id),
    onTools(id) {
      catalog.observe(id)
      events.emit('tools-changed', { connection: id })
    },
  })
  serversExist = true
  const catalog = createCatalog({ config, servers, pins, names, onNamed: announceAllTools })
  const approvalStore = createApprovalStore({
    storage,
    expiry: () => config.current().limits.approvalExpiry,
    clock,
    ids,
    log,
    emit: events.emit,
  })
  const review = createPinReview({ approvals: storage.approvals, approvalStore, catalog, config })
  const calls = createCalls({
    storage,
    catalog,
    config,
    approvalStore,
    grants: grantCache,
    servers,
    masking,
    clock,
    ids,
    emit: events.emit,
    idOf: identity.idOf,
  })
  const entries = createServerEntries({
    storage,
    config,
    seal,
    findUserId,
    clock,
    log,
  })
  await entries.sync()
  const serverService = createServerService({
    config,
    servers,
    entries,
    named: names.pending,
    catalog,
    forgetPins: pins.forget,
    moveLiterals: createLiteralMover({ config, secrets }),
    storage,
    clock,
    demandCurrent: identity.demandCurrent,
    async stateSession(by, name, stated) {
      const { secrets: moved, warnings } = await identity.sessions.update(by, name, { servers: stated })
      return { ...(moved && { secrets: moved }), ...(warnings && { warnings }) }
    },
  })
  const { demandCurrent } = identity
  const repositories = createRepositories({ config, masking, clock, log, demandCurrent, forgetPins: pins.forget })
  const imports = createImports({
    config,
    secrets,
    owners,
    servers,
    moveLiterals: createLiteralMover({ config, secrets }),
    seal,
    demandCurrent: identity.demandCurrent,
  })
  const { describePrincipal } = config
  const { findTool, listFacts: toolsOf } = catalog
  const rules = createRuleService({ config, findTool, storage, clock })
  const services = createApprovalServices({
    storage,
    approvalStore,
    grantCache,
    identity,
    findUser,
    clock,
    ids,
    describePrincipal,
    toolsOf,
  })
  const removal = createRemoval({
    storage,
    config,
    identity,
    removers: [
      identity.remover,
      secrets.remover,
      createPinsRemover(storage),
      createServerEntriesRemover(storage),
      createNamesRemover(storage),
      createApprovalsRemover({ storage, approvalStore }),
      createCallsRemover(storage),
    ],
  })
  const eventLog = createEventLog(storage.instance, events, eventNames)
  const { notify: settings } = options
  const notify = createNotify({ events, config, secrets, masking, storage, post, settings, clock, ids, log })
  const status = createStatus({
    config,
    serverFiles,
    storage,
    calls,
    servers: serverService,
    repositories,
    audit,
    clock,
    version,
  })

  /** Servers reconnect when a secret that they use was added, changed or removed. */
  function reconnect(connections: readonly string[]): void {
    for (const id of connections) if (servers.find(id)) servers.reconnect(id)
  }
  function tellFinding(connection: string, found: number): void {
    events.emit('secret-found', { server: servers.find(connection)?.name ?? connection, found })
  }
  /** The lists of the servers are the same, but a changed pin offers or hides other tools. */
  function announceTools(connections: readonly string[]): void {
    catalog.invalidate()
    for (const connection of connections) events.emit('tools-changed', { connection })
  }

  /** Tools of members may need other names now. */
  function renameTools(): void {
    announceAllTools()
    void catalog.nameAll()
  }
  function announceAllTools(): void {
    announceTools(config.connections().map(({ id }) => id))
  }

  function announceServer(id: string): void {
    const server = serverService.list().find((candidate) => candidate.id === id)
    if (server) events.emit('server-changed', { server })
  }

  identity.onRoster(() => config.restate())
  /** The connections and the offers depend on the configuration and on the principals. */
  function applyChanges(): void {
    catalog.invalidate()
    servers.reconcile(config.connections())
    void entries.sync()
    void catalog.nameAll()
  }
  const stops = [
    events.on('principals-changed', applyChanges),
    events.on('config-changed', ({ changed }) => {
      applyChanges()
      repositories.lookNow()
      if (changed.includes('environment')) retryMissing()
    }),
  ]
  /** Automatic retries cannot fix a missing variable, but a change of `environment` can. */
  function retryMissing(): void {
    for (const { id, error } of servers.list()) if (error?.code === 'variable-missing') servers.reconnect(id)
  }
  servers.reconcile(config.connections())
  let started = false
  const first = servers.introduced(
    config.connections().map(({ id }) => id),
    config.current().listen.ready,
  )
  void Promise.resolve(first).then(() => {
    started = true
  })

  function introduced(principal: Principal, selector: ViewSelector): Promise<void> | undefined {
    const used = [...config.effective(principal).servers.values()]
    const wanted = selector.kind === 'server' ? used.filter(({ name }) => name === selector.name) : used
    const listed = servers.introduced(
      wanted.map(({ connection }) => connection),
      config.current().limits.firstList,
    )
    return listed ? listed.then(() => names.pending()) : names.pending()
  }

  const stopClearingUp = keepClearingUp(storage, clock, log)
  let closing: Promise<void> | undefined
  async function close(): Promise<void> {
    for (const stop of stops) stop()
    identity.close()
    await stopClearingUp()
    await repositories.close()
    await serverFiles.close()
    await config.close()
    await calls.close(options.graceMs ?? config.current().limits.grace)
    approvalStore.close()
    grantCache.close()
    eventLog.close()
    await notify.close()
    await servers.close()
    secrets.close()
    pins.close()
    names.close()
    await audit.close()
    await storage.close()
  }

  return {
    instance: storage.instance,
    id: createHmac('sha256', auditKeys[0]).update('the id of these data').digest('hex').slice(0, 12),
    version,
    clock,
    config,
    identity,
    users: identity.users,
    agents: identity.agents,
    sessions: identity.sessions,
    tokens: identity.tokens,
    secrets,
    masking,
    events,
    calls: { run: calls.advance, find: storage.calls.find, list: storage.calls.list, accountOf: calls.accountOf },
    audit: { ...storage.audit, verify: audit.verify, export: audit.export, confirmClock: audit.confirmClock },
    catalog,
    admitChange: createChangeLimit({ config, clock }),
    status,
    servers: serverService,
    gallery: createGallery({ config, servers: serverService, secrets, getDocument: getFromRegistry, clock }),
    imports,
    repositories,
    serverFiles,
    rules,
    ...services,
    removal,
    projects: createProjectService({ config, identity, removal }),
    eventLog,
    webhooks: notify.webhooks,
    data: createDataService({ storage }),
    pins: createPinService({ pins, config, review, publicNames: catalog.publicNames }),
    introduce: createIntroduction({
      catalog,
      servers,
      hasAdministrator: () => !identity.setup.needed(),
    }),
    started: () => started,
    introduced,
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** Masks the keys, passwords and proxy credentials that the gateway was started with. */
function maskOwnSecrets(masking: Masking, environment: NodeJS.ProcessEnv, databaseUrl: string | undefined): void {
  const { SALLYPORT_KEY, SALLYPORT_KEY_PREVIOUS, SALLYPORT_ADMIN_PASSWORD } = environment
  const password = databaseUrl && URL.canParse(databaseUrl) ? decodeURIComponent(new URL(databaseUrl).password) : ''
  const own = [SALLYPORT_KEY, SALLYPORT_KEY_PREVIOUS, SALLYPORT_ADMIN_PASSWORD, password]
  for (const value of [...own, ...networkCredentials(process.env)]) {
    if (value) masking.hide(value)
  }
}

function findOwn<Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}
