import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { GatewayError } from '../../contract/errors.ts'
import type { StdioServer } from '../../contract/server.ts'
import { findSystemCode, toSystemReason } from '../../contract/system-error.ts'
import { type Clock, sleep } from '../../lib/clock.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'
import { readProcessStat } from '../../lib/processes.ts'
import { createLineReader, idOfLongLine } from '../../wire/lines.ts'
import type { Outgoing } from '../../wire/peer.ts'
import { childEnvironment } from '../environment.ts'
import type { ServerLogs } from '../logs.ts'
import { killGroup, signalGroup } from '../process.ts'
import type { CarrierParts, ServerCarrier } from './carrier.ts'

export type StdioParts = CarrierParts & {
  readonly definition: StdioServer
  readonly instance: string
  readonly clock: Clock
  readonly logs: ServerLogs
  /** Working folder of a program whose definition has no `cwd`. It is created if it is missing. */
  readonly workingFolder: string
  /** The command was configured in a scope of administrators. */
  readonly trusted: boolean
  readonly children: ChildRecords
}

/** Stores child processes, so that a later gateway can end them if this one is killed. */
export type ChildRecords = {
  add(child: { pid: number; startTime: string; connection: string }): Promise<void>
  remove(pid: number): void
}

const maxQueuedBytes = 16 * 1024 * 1024
const stderrPerWindow = 2 * 1024 * 1024
const stderrWindowMs = 100
const quietEndMs = 1000
const askedEndMs = 2000
/** Waiting time for the last output of an ended program, which usually contains the reason. */
const lastLinesMs = 250

/** A child process that exchanges messages as lines. When it ends, its whole process group is ended. */
export async function openStdio(parts: StdioParts, connection: string): Promise<ServerCarrier> {
  const { definition, clock } = parts
  const cwd = definition.cwd ?? makeFolder(parts.workingFolder)
  parts.logs.begin()
  const child = start(parts, cwd)
  const group = await started(child, definition)
  const exited = once(child, 'exit')
  const recorded = record(parts, group, connection)
  readStdout(child, parts, () => lose(endlessLine(parts.maxMessageBytes)))
  const lastLines = readStderr(child, parts)
  const queue = createWriteQueue(child)
  let ending: Promise<void> | undefined
  let lost = false

  child.on('exit', (code, signal) => {
    const ended = ending ? new GatewayError('server-unavailable', 'The gateway ended the program') : toEnd(code, signal)
    void within(lastLines, lastLinesMs, clock).then(() => lose(ended))
  })

  /** Only the first reason is reported; later ones are consequences of it. */
  function lose(reason: GatewayError): void {
    if (lost) return
    lost = true
    parts.onClose(reason)
    void close()
  }

  function close(): Promise<void> {
    ending ??= end()
    return ending
  }

  /** Closes the input, then sends SIGTERM, then kills the process group with all grandchildren. */
  async function end(): Promise<void> {
    queue.close()
    child.stdin?.end()
    if (!(await within(exited, quietEndMs, clock)) && signalGroup(group, 'SIGTERM')) {
      await within(exited, askedEndMs, clock)
    }
    await killGroup(group, clock)
    child.stdout?.destroy()
    child.stderr?.destroy()
    await recorded
    parts.children.remove(group)
  }

  return { send: queue.send, close, listen: undefined, endSession: async () => {}, pid: group }
}

function start({ definition, instance, trusted }: StdioParts, cwd: string): ChildProcess {
  try {
    return spawn(definition.command, definition.args, {
      cwd,
      env: childEnvironment({ own: definition.env, instance, trusted }),
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      shell: false,
      windowsHide: true,
    })
  } catch (error) {
    throw toSpawnError(error, definition) // some failures are thrown, others are reported by an event
  }
}

/** Creates a folder that only the gateway's operating system user can read. */
function makeFolder(folder: string): string {
  try {
    makePrivateFolder(folder)
    return folder
  } catch (error) {
    const message = `The working folder ${folder} of the program could not be created: ${toSystemReason(error)}`
    throw new GatewayError('spawn-failed', message, { errno: findSystemCode(error), folder })
  }
}

function toEnd(code: number | null, signal: NodeJS.Signals | null): GatewayError {
  if (signal === null) {
    return new GatewayError('server-broken', `The program ended with code ${code}`, { exitCode: code ?? undefined })
  }
  const message = `The program was ended by ${signal}, not by the gateway`
  return new GatewayError('server-broken', message, { exitCode: undefined, signal })
}

async function started(child: ChildProcess, definition: StdioServer): Promise<number> {
  child.stdin?.on('error', () => {}) // a closed input is detected by the exit or by a timeout
  if (child.pid !== undefined) return child.pid
  const [error]: unknown[] = await once(child, 'error').catch((thrown: unknown) => [thrown])
  throw toSpawnError(error, definition)
}

function toSpawnError(error: unknown, { command, cwd }: StdioServer): GatewayError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  // The system reports ENOENT both for a missing folder and for a missing program.
  if (code === 'ENOENT' && cwd !== undefined && !existsSync(cwd)) {
    const details = { errno: code, missing: 'folder' }
    const message = `${command} could not be started: the working folder ${cwd} does not exist`
    return new GatewayError('spawn-failed', message, details)
  }
  const where = cwd === undefined ? '' : ` in ${cwd}`
  return new GatewayError('spawn-failed', `${command} could not be started${where} (${code})`, { errno: code })
}

async function record(parts: StdioParts, pid: number, connection: string): Promise<void> {
  const stat = await readProcessStat(pid)
  if (!stat) return
  await parts.children.add({ pid, startTime: stat.startTime, connection }).catch(() => {})
}

async function within(done: Promise<unknown>, milliseconds: number, clock: Clock): Promise<boolean> {
  const controller = new AbortController()
  const late = sleep(clock, milliseconds, controller.signal).then(
    () => false,
    () => false,
  )
  const result = await Promise.race([done.then(() => true), late])
  controller.abort()
  return result
}

function readStdout(child: ChildProcess, parts: StdioParts, onEndless: () => void): void {
  const reader = createLineReader({
    maxBytes: parts.maxMessageBytes,
    onLine: (line) => parts.onMessage(line, undefined),
    onLongLine(line) {
      const id = idOfLongLine(line)
      const message = `The answer has ${line.bytes} bytes, more than ${parts.maxMessageBytes}`
      if (id !== undefined) parts.onTooLong(id, new GatewayError('result-too-large', message, {}, { reach: 'sent' }))
    },
    onEndless() {
      child.stdout?.off('data', read)
      child.stdout?.pause() // blocks the program until its output is closed
      onEndless()
    },
  })
  const read = (chunk: Buffer) => reader.push(chunk)
  child.stdout?.on('data', read)
}

function endlessLine(most: number): GatewayError {
  const message = `The gateway ended the program: it wrote a line that is far longer than the limit of ${most} bytes`
  return new GatewayError('server-broken', message, {}, { reach: 'sent' })
}

/** Stores the standard error of a program and resolves when it is closed. Limits the bytes read per time window. */
function readStderr(child: ChildProcess, parts: StdioParts): Promise<unknown> {
  let windowBytes = 0
  child.stderr?.on('data', (chunk: Buffer) => {
    parts.logs.push(chunk)
    windowBytes += chunk.length
    if (windowBytes < stderrPerWindow) return
    child.stderr?.pause()
    parts.clock.after(stderrWindowMs, () => {
      windowBytes = 0
      child.stderr?.resume()
    })
  })
  return child.stderr ? once(child.stderr, 'close') : Promise.resolve()
}

type WriteQueue = { send(message: Outgoing): Promise<void>; close(): void }

const newline = Buffer.from('\n')

/** A cancelled request is not sent. Notifications have no waiter and are always sent. */
function isWanted(message: Outgoing): boolean {
  return message.id === undefined || message.waiting()
}

/** Joins the lines of one tick into one write. Queues a limited number of bytes while the program does not read. */
function createWriteQueue(child: ChildProcess): WriteQueue {
  let waiting: Outgoing[] = []
  let bytes = 0
  let scheduled = false
  let blocked = false
  let open = true

  const flush = () => {
    scheduled = false
    if (blocked || !open) return
    const batch = waiting.filter(isWanted)
    waiting = []
    bytes = 0
    if (batch.length === 0) return
    for (const message of batch) message.sent()
    const chunk = Buffer.concat(batch.flatMap((message) => [message.body, newline]))
    blocked = child.stdin?.write(chunk) === false
  }
  child.stdin?.on('drain', () => {
    blocked = false
    flush()
  })
  const forgetAbandoned = () => {
    waiting = waiting.filter(isWanted)
    bytes = waiting.reduce((sum, message) => sum + message.body.length, 0)
  }
  return {
    async send(message) {
      if (!open) throw new GatewayError('server-unavailable', 'The program is ending', {}, { reach: 'unsent' })
      if (bytes + message.body.length > maxQueuedBytes) forgetAbandoned()
      if (bytes + message.body.length > maxQueuedBytes) {
        throw new GatewayError('server-broken', 'The program has stopped reading its input', {}, { reach: 'unsent' })
      }
      waiting.push(message)
      bytes += message.body.length
      if (scheduled) return
      scheduled = true
      process.nextTick(flush)
    },
    close() {
      open = false
      waiting = []
    },
  }
}
