import { z } from 'zod'
import { type ConfigStore, type FileServers, parseServerFile, type Seal, watchFile } from '../config/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { ServerFile, ServerFileEntry } from '../contract/server-file.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import { parseJson } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { createTurns } from '../lib/turns.ts'
import { findLiterals } from '../masking/masking.ts'
import type { Storage } from '../storage/storage.ts'
import { toChangeEntry } from '../storage/tables/audit.ts'
import { compareServers, type Definitions, describeChanges } from './compare.ts'
import { type Content, type Look, lookAt } from './look.ts'

/** The files `mcp-servers.json` that `serve` reads, and the content that an administrator has confirmed. */
export type ServerFiles = {
  /** The file in use and the one that waits; empty if there is none. */
  list(): ServerFile[]
  /** Confirms the content with this hash. Throws if the file has other content. */
  trust(by: Principal, wanted: { file: string; hash: string }): Promise<ServerFile>
  /** The confirmed servers, for the configuration. */
  inForce(): FileServers | undefined
  /** Why the newest content is not in use. */
  notices(): string[]
  close(): Promise<void>
}

export type ServerFilesParts = {
  /** The possible files. The first that exists is used. Empty for every command but `serve`. */
  readonly files: readonly string[]
  readonly storage: Pick<Storage, 'documents' | 'changes' | 'audit'>
  readonly config: Pick<ConfigStore, 'restate' | 'current'>
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
  readonly emit: Emitter<EventTable>['emit']
  /** Throws if the principal was removed or signed out after the request arrived. */
  demandCurrent(principal: Principal): void
}

/** The confirmed content. Content with literal secrets is stored as a digest only. */
const Stored = z.object({ digest: z.string(), text: z.string().optional() })
type Stored = z.infer<typeof Stored>

type Waiting = { readonly content: Content; readonly hash: string }
type State = {
  readonly file?: string
  readonly inForce?: FileServers
  readonly ignored: readonly string[]
  readonly waiting?: Waiting
  readonly refused?: string
}

const fileAuthor = 'file'
const nothing: State = { ignored: [] }
const nobody: Definitions = {}

/**
 * Trust is by content: a program of the file starts only after an administrator has confirmed this content. The content
 * is read once, so what is shown, confirmed and applied is the same.
 */
export async function createServerFiles(parts: ServerFilesParts): Promise<ServerFiles> {
  if (parts.files.length > 0) return followFiles(parts)
  return { list: () => [], trust: refuse, inForce: () => undefined, notices: () => [], close: async () => undefined }
}

async function followFiles(parts: ServerFilesParts): Promise<ServerFiles> {
  const { files, storage, config, seal, clock, log, emit } = parts
  const turns = createTurns()
  let state: State = nothing
  let started = false
  await turns(() => update(lookAt(files)))
  const watchers = await Promise.all(files.map((file) => watchFile({ file, clock, log, onQuiet: () => later() })))
  started = true
  const stopSharing = storage.changes.on('config', () => turns(() => update(lookAt(files))))

  function later(): void {
    turns(() => update(lookAt(files))).catch((error: unknown) => {
      log.error({ code: toGatewayError(error).code }, 'mcp-servers.json could not be read again')
    })
  }

  async function update(look: Look): Promise<void> {
    const next = look === undefined ? nothing : await judge(look)
    const news = explain(next)
    if (news !== undefined && news !== explain(state)) log.warn({ file: next.file }, news)
    await apply(next, fileAuthor)
  }

  async function judge(look: Exclude<Look, undefined>): Promise<State> {
    const { file } = look
    const stored = await findStored(file)
    const earlier = state.file === file ? state.inForce : undefined
    const kept = earlier ?? toServers(file, stored?.text)
    const before = { file, ignored: [], ...(kept && { inForce: kept }) }
    if (!look.ok) return { ...before, refused: look.reason }
    if (stored && seal.fits(look.entries, stored.digest)) return toConfirmed(look)
    return { ...before, ignored: look.ignored, waiting: { content: look, hash: seal.make(look.entries) } }
  }

  function toConfirmed({ file, servers, ignored }: Content): State {
    return { file, ignored, inForce: { file, servers } }
  }

  /** A change by the file itself is recorded before it takes effect. At the start nothing changes. */
  async function apply(next: State, by: string): Promise<void> {
    const [before, after] = [state.inForce?.servers ?? nobody, next.inForce?.servers ?? nobody]
    const entries = listDifferent(before, after)
    if (started && by === fileAuthor && entries.length > 0) {
      const body = { change: 'server-file', file: next.file ?? state.file, servers: toSummary(entries) }
      await storage.audit.append({ principal: by, subject: 'config', body })
    }
    state = next
    if (entries.length === 0) return
    config.restate()
    emit('config-changed', { changed: entries.map(({ name }) => `servers.${name}`), by })
  }

  async function findStored(file: string): Promise<(Stored & { version: number }) | undefined> {
    const document = await storage.documents.find(nameOf(file))
    const parsed = document && Stored.safeParse(parseJson(document.text))
    return document && parsed?.success ? { ...parsed.data, version: document.version } : undefined
  }

  function trust(by: Principal, wanted: { file: string; hash: string }): Promise<ServerFile> {
    return turns(async () => {
      parts.demandCurrent(by)
      if (by.role !== 'administrator')
        throw new GatewayError('forbidden', 'Only administrators can confirm servers of a file')
      const { waiting } = state
      if (waiting === undefined || waiting.content.file !== wanted.file) return refuse()
      if (waiting.hash !== wanted.hash)
        throw new GatewayError('config-conflict', `${wanted.file} has other content than the one that was confirmed`)
      const { content } = waiting
      await store(content, waiting.hash, by)
      await apply(toConfirmed(content), toPrincipalKey(by))
      return show()
    }).then(async (shown) => {
      await storage.changes.announce('config')
      return shown
    })
  }

  /** The confirmation and its author are one commit. */
  async function store(content: Content, hash: string, by: Principal): Promise<void> {
    const { file, servers, entries } = content
    const changed = toSummary(listDifferent(state.inForce?.servers ?? nobody, servers))
    const body = { change: 'server-file-trusted', file, hash, servers: changed }
    const entry = toChangeEntry({ principal: toPrincipalKey(by), subject: 'config', body }, clock.now())
    const open = Object.entries(servers).some(([name, definition]) => findLiterals(name, definition).length > 0)
    const stored: Stored = { digest: hash, ...(!open && { text: `{"mcpServers":${entries}}` }) }
    const document = { name: nameOf(file), format: 'json', text: JSON.stringify(stored) }
    const { version = 0 } = (await storage.documents.find(nameOf(file))) ?? {}
    if (await storage.documents.replace({ ...document, version }, { steps: [{ entry }] })) return
    throw new GatewayError('config-conflict', `${file} was confirmed by another request at the same time`)
  }

  function show(): ServerFile {
    const { file = '', inForce, waiting, refused, ignored } = state
    const before = inForce?.servers ?? nobody
    const servers = compareServers(before, waiting?.content.servers ?? before)
    const overridden = servers.map(({ name }) => name).filter((name) => Object.hasOwn(config.current().servers, name))
    const shown = { file, servers, ignored: [...ignored], overridden }
    if (refused !== undefined) return { ...shown, state: 'refused', reason: refused }
    if (waiting === undefined) return { ...shown, state: 'in-force' }
    return { ...shown, state: 'waiting', hash: waiting.hash, reason: describeChanges(servers) }
  }

  function explain({ file = '', inForce, waiting, refused }: State): string | undefined {
    const kept = inForce ? '; the confirmed version stays in use' : ''
    if (refused !== undefined) return `${file} is not used: ${refused}${kept}`
    if (waiting === undefined) return undefined
    const changes = describeChanges(compareServers(inForce?.servers ?? nobody, waiting.content.servers))
    return `${file} waits for confirmation (${changes})${kept}. Look at it and confirm it with: sallyport config trust ${file}`
  }

  async function close(): Promise<void> {
    stopSharing()
    await Promise.all(watchers.map((watcher) => watcher.close()))
    await turns(async () => undefined)
  }

  return {
    list: () => (state.file === undefined ? [] : [show()]),
    trust,
    inForce: () => state.inForce,
    notices() {
      const news = explain(state)
      return news === undefined ? [] : [news]
    },
    close,
  }
}

function listDifferent(before: Definitions, after: Definitions): ServerFileEntry[] {
  return compareServers(before, after).filter(({ change }) => change !== 'same')
}

function toSummary(entries: readonly ServerFileEntry[]) {
  return entries.map(({ name, change }) => ({ name, change }))
}

async function refuse(): Promise<never> {
  throw new GatewayError('request-invalid', 'No file with this name waits for confirmation')
}

function nameOf(file: string): string {
  return `server-file:${file}`
}

function toServers(file: string, text: string | undefined): FileServers | undefined {
  const reading = text === undefined ? undefined : parseServerFile(file, text)
  return reading?.ok ? { file, servers: reading.servers } : undefined
}
