import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type ConfigStore, type FilePlace, placeOf, seesDefinition } from '../config/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { RepositoryServer, RepositoryState, WaitingContent } from '../contract/repository.ts'
import type { Scope } from '../contract/scope.ts'
import { isSame, own } from '../documents/values.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import { readInside } from '../lib/inside-file.ts'
import type { Log } from '../lib/log.ts'
import { createRounds } from '../lib/rounds.ts'
import { hideLiterals, type Masking } from '../masking/masking.ts'
import { toChangedLines } from '../shared/line-difference.ts'
import type { AcceptedFile } from '../storage/tables/accepted-files.ts'
import { type Judged, type JudgedServer, judgeContent } from './judge.ts'
import { type FoundServer, readServers } from './read.ts'

type RepositoryParts = {
  readonly config: ConfigStore
  readonly masking: Pick<Masking, 'value'>
  readonly clock: Clock
  readonly log: Log
  /** Throws if the principal was removed or signed out after the request arrived. */
  demandCurrent(principal: Principal): void
  /** Removes the pins of a removed server. */
  forgetPins(server: { readonly name: string; readonly scope: string }, by: string): Promise<void>
}

/** What a file has for a project: known from the last reading. */
export type RepositoryNotice = { readonly project: string; readonly file: string; readonly message: string }

/** Files in repositories that projects take servers from. A content takes effect only when somebody accepts it. */
export type Repositories = {
  /** What is accepted, what waits for this principal, and the difference. Reads the file; starts and contacts nothing. */
  get(by: Principal, project: string): Promise<RepositoryState>
  /** Puts the content with this hash into effect. The hash names what `get` has shown to this principal. */
  accept(by: Principal, project: string, hash: string): Promise<RepositoryState>
  /** The contents that wait for acceptance, and the files that cannot be read. */
  notices(): readonly RepositoryNotice[]
  /** Call when the configuration has changed. */
  lookNow(): void
  close(): Promise<void>
}

const mostBytes = 256 * 1024
const mostReadMs = 5000
/** Milliseconds between two looks at the files. A look only finds out that a content waits; it puts nothing into effect. */
const lookEveryMs = 15_000

type Read =
  | {
      readonly ok: true
      readonly digest: string
      readonly found: readonly FoundServer[]
      readonly ignored: readonly string[]
    }
  | { readonly ok: false; readonly problem: string }

type Content = Extract<Read, { ok: true }>

export function createRepositories(parts: RepositoryParts): Repositories {
  const { config, masking, clock, log } = parts
  const notices = new Map<string, RepositoryNotice>()
  let cancel = (): void => undefined
  const look = createRounds(lookOnce)
  let looking = Promise.resolve()

  /** The place of the file, if the principal may see it. */
  function toPlace(by: Principal, project: string): FilePlace {
    const scope: Scope = { kind: 'project', name: project }
    if (own(config.current().projects, project) === undefined)
      throw new GatewayError('not-found', `No project is named ${project}`)
    if (!seesDefinition(by, { scope }, config.current()))
      throw new GatewayError('forbidden', `Only administrators and the owners of the project ${project} can do this`)
    const place = placeOf(config.current(), project)
    if (place) return place
    throw new GatewayError('not-found', `The project ${project} has no repository: set projects.${project}.repository`)
  }

  function judge(by: Principal, place: FilePlace, { digest, found }: Content): Judged {
    return judgeContent({ config, by, place, digest, found, before: config.findAccepted(place) })
  }

  function toState(by: Principal, project: string, place: FilePlace, read: Read): RepositoryState {
    const accepted = config.findAccepted(place)
    const judged = read.ok ? judge(by, place, read) : undefined
    const waits = read.ok && judged !== undefined && isWaiting(accepted, read.digest, judged)
    return {
      project,
      path: place.folder,
      file: place.file,
      ...(accepted && { accepted: toShownAccepted(accepted) }),
      ...(waits && { waiting: masking.value(toWaiting(accepted, judged, read.ignored)) }),
      ...(!read.ok && { problem: read.problem }),
    }
  }

  async function accept(by: Principal, project: string, hash: string): Promise<RepositoryState> {
    const place = toPlace(by, project)
    const read = await readInTime(place)
    if (!read.ok) throw new GatewayError('repository-unreadable', read.problem)
    const before = config.findAccepted(place)
    await config.accept(() => {
      parts.demandCurrent(by)
      demandRight(by, project)
      const now = toPlace(by, project)
      const judged = judge(by, now, read)
      // The place and the bytes are part of the hash, as is the verdict on each entry.
      if (judged.hash !== hash) throw changed(now)
      const key = toPrincipalKey(by)
      return { ...now, hash: read.digest, servers: judged.accepted, by: key, at: clock.now() }
    })
    const { servers = {} } = config.findAccepted(place) ?? {}
    const removed = Object.keys(before?.servers ?? {}).filter((name) => !Object.hasOwn(servers, name))
    for (const name of removed) await parts.forgetPins({ name, scope: place.scope }, toPrincipalKey(by))
    note(project, place, read)
    return toState(by, project, place, read)
  }

  function demandRight(by: Principal, project: string): void {
    const owners = own(config.current().projects, project)?.owners ?? []
    if (by.kind === 'user' && by.role === 'administrator') return
    if (by.kind === 'user' && by.role !== 'auditor' && owners.includes(by.name)) return
    throw new GatewayError('forbidden', `Only administrators and the owners of the project ${project} can do this`)
  }

  /** A file system on the network may not answer. */
  async function readInTime(place: FilePlace): Promise<Read> {
    const { promise: late, resolve } = Promise.withResolvers<Read>()
    const problem = `${join(place.folder, place.file)} could not be read within ${mostReadMs / 1000} seconds`
    const cancelLate = clock.after(mostReadMs, () => resolve({ ok: false, problem }))
    return Promise.race([readContent(place), late]).finally(cancelLate)
  }

  async function lookOnce(): Promise<void> {
    const projects = Object.keys(config.current().projects)
    for (const project of notices.keys()) if (!projects.includes(project)) notices.delete(project)
    await Promise.all(
      projects.map(async (project) => {
        const place = placeOf(config.current(), project)
        if (place) note(project, place, await readInTime(place))
        else notices.delete(project)
      }),
    )
  }

  /** Keeps what the last reading has found, and logs it if it is new. */
  function note(project: string, place: FilePlace, read: Read): void {
    const file = join(place.folder, place.file)
    const waits = read.ok && toState(watcher, project, place, read).waiting !== undefined
    if (read.ok && !waits) return void notices.delete(project)
    const message = read.ok ? `${file} has content that nobody has accepted yet` : read.problem
    const notice = { project, file, message }
    if (!isSame(notices.get(project), notice)) log.warn(notice, 'A repository needs attention')
    notices.set(project, notice)
  }

  function lookNow(): void {
    cancel()
    cancel = clock.after(lookEveryMs, lookNow)
    looking = look().catch((error: unknown) =>
      log.warn({ code: toGatewayError(error).code }, 'Repositories could not be read'),
    )
  }

  lookNow()
  return {
    async get(by, project) {
      const place = toPlace(by, project)
      const read = await readInTime(place)
      note(project, place, read)
      return toState(by, project, place, read)
    },
    accept,
    notices: () => [...notices.values()],
    lookNow,
    async close() {
      cancel()
      await looking
    },
  }
}

/** A look in the background sees everything, like an administrator. */
const watcher: Principal = { kind: 'user', name: 'gateway', role: 'administrator' }

/** Reads the file once: the same bytes are judged, shown, hashed and accepted. */
async function readContent({ folder, file }: FilePlace): Promise<Read> {
  const read = await readInside({ folder, file, mostBytes })
  if (!read.ok) return read
  const found = readServers(join(folder, file), read.bytes)
  if (!found.ok) return found
  const digest = createHash('sha256').update(read.bytes).digest('hex')
  return { ok: true, digest, found: found.servers, ignored: found.ignored }
}

function isWaiting(accepted: AcceptedFile | undefined, digest: string, judged: Judged): boolean {
  return accepted === undefined || accepted.hash !== digest || !isSame(accepted.servers, judged.accepted)
}

function toWaiting(before: AcceptedFile | undefined, judged: Judged, ignored: readonly string[]): WaitingContent {
  const old = before?.servers ?? {}
  return {
    hash: judged.hash,
    servers: judged.servers.map((server) => toShownServer(server, old)),
    removed: Object.keys(old).filter((name) => !Object.hasOwn(judged.accepted, name)),
    ignored: [...ignored],
    difference: isSame(old, judged.accepted) ? [] : toChangedLines(toLines(old), toLines(judged.accepted)),
  }
}

function toShownServer(server: JudgedServer, old: AcceptedFile['servers']): RepositoryServer {
  const { key: name, because } = server
  const definition = hideLiterals(name, server.definition)
  const notes = [...server.notes]
  if (because !== undefined) return { name, outcome: 'set-aside', because, definition, notes }
  if (!Object.hasOwn(old, name)) return { name, outcome: 'new', definition, notes }
  return { name, outcome: isSame(old[name], server.definition) ? 'same' : 'changed', definition, notes }
}

/** The order of entries in the file has no effect, so it is no difference. */
function toLines(servers: AcceptedFile['servers']): string[] {
  const sorted = Object.entries(servers).sort(([left], [right]) => (left < right ? -1 : 1))
  return JSON.stringify(Object.fromEntries(sorted), undefined, 2).split('\n')
}

function toShownAccepted({ by, at, hash, servers }: AcceptedFile): RepositoryState['accepted'] {
  return { by, at: toIso(at), hash, servers: Object.keys(servers) }
}

function changed({ folder, file }: FilePlace): GatewayError {
  const path = join(folder, file)
  return new GatewayError('repository-changed', `${path}, or what it may do, is no longer what was shown`, { path })
}
