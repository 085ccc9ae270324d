import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { parseJson } from '../../lib/json.ts'
import type { CompactStep, Engine, UnitOutcome } from '../unit.ts'
import { packUnits, type SqliteReply, type SqliteRequest, type SqliteSettings, unpackOutcomes } from './protocol.ts'
import { compactFailed } from './room.ts'

/** When run from source, the worker is `worker.ts`. A build writes it next to this module as `sqlite-worker.js`. */
const workerFile = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './sqlite-worker.js', import.meta.url)

type Waiting = { answer(reply: SqliteReply): void; fail(error: GatewayError): void }

/** Starts the thread that owns the database file. All requests fail after the thread has ended. */
export function openSqliteEngine(settings: SqliteSettings): Promise<Engine> {
  const opening = Promise.withResolvers<Engine>()
  const closed = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<GatewayError>()
  const waiting = new Map<number, Waiting>()
  let requests = 0
  let end: GatewayError | undefined

  const worker = new Worker(workerFile, { workerData: settings, name: 'sallyport-sqlite' })
  worker.on('message', (reply: SqliteReply) => {
    if (reply.kind === 'opened') return opening.resolve(engine)
    if (reply.kind === 'not-opened') return stop(toOpenError(settings.folder, reply.code, reply.message))
    const request = waiting.get(reply.id)
    waiting.delete(reply.id)
    request?.answer(reply)
  })
  worker.on('error', (error) => stop(unavailable(`The storage thread failed: ${error.message}`)))
  worker.on('exit', () => {
    stop(unavailable('The storage thread has ended'))
    closed.resolve()
  })

  const engine: Engine = {
    run(units) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly UnitOutcome[]>()
      send({ kind: 'run', id: ++requests, units: packUnits(units) }, reject, (reply) => {
        if (reply.kind === 'ran') resolve(unpackOutcomes(reply.outcomes))
      })
      return promise
    },
    query(statement) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly unknown[]>()
      send(
        { kind: 'query', id: ++requests, statement },
        reject,
        (reply) => reply.kind === 'rows' && resolve(reply.rows),
      )
      return promise
    },
    compact(how) {
      const { promise, resolve, reject } = Promise.withResolvers<CompactStep>()
      send(
        { kind: 'compact', id: ++requests, how },
        reject,
        (reply) => reply.kind === 'compacted' && resolve(reply.step),
      )
      return promise
    },
    ended: ended.promise,
    close() {
      worker.postMessage({ kind: 'close' } satisfies SqliteRequest)
      return closed.promise
    },
  }
  return opening.promise

  function send(
    request: Exclude<SqliteRequest, { kind: 'close' }>,
    fail: (error: GatewayError) => void,
    answer: (reply: SqliteReply) => void,
  ): void {
    if (end) return fail(end)
    waiting.set(request.id, {
      fail,
      answer(reply) {
        if (reply.kind !== 'failed') return answer(reply)
        if (request.kind === 'compact') return fail(compactFailed(settings.folder, reply.message))
        fail(unavailable(`The database cannot be ${request.kind === 'run' ? 'written' : 'read'}: ${reply.message}`))
      },
    })
    worker.postMessage(request)
  }

  function stop(error: GatewayError): void {
    if (end) return
    end = error
    ended.resolve(error)
    opening.reject(error)
    for (const { fail } of waiting.values()) fail(error)
    waiting.clear()
  }
}

function unavailable(message: string): GatewayError {
  return new GatewayError('storage-unavailable', message)
}

function toOpenError(folder: string, code: GatewayError['code'], message: string): GatewayError {
  if (code !== 'data-locked') return new GatewayError(code, message, { folder })
  const holder = readHolder(folder)
  const facts = [holder.pid === undefined ? '' : `process ${holder.pid}`, holder.url ?? ''].filter(Boolean)
  return new GatewayError(code, facts.length > 0 ? `${message} (${facts.join(', ')})` : message, { folder, ...holder })
}

/** The content of `gateway.json`, which a running gateway writes into its data folder. */
const Holder = z.object({ pid: z.int().optional(), url: z.string().optional() })

function readHolder(folder: string): z.infer<typeof Holder> {
  try {
    return Holder.parse(parseJson(readFileSync(join(folder, 'gateway.json'))))
  } catch {
    return {}
  }
}
