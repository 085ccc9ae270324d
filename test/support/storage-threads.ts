import { EventEmitter } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import type { SqliteReply, SqliteSettings } from '../../src/storage/sqlite/protocol.ts'
import { programPath } from './programs.ts'
import type { Ended, Order } from './storage-thread.ts'

/** They end with the process. */
const idle = new Set<Worker>()

/** The part of a `Worker` that a gateway uses. */
export type StorageThread = Pick<EventEmitter, 'on'> & { postMessage(message: unknown): void }

/**
 * Instead of a new thread for each gateway: an idle one if there is one. Starting a thread and loading SQLite takes
 * more time than everything else that starting a gateway does.
 */
export function startStorageThread(_file: URL, { workerData }: { workerData: SqliteSettings }): StorageThread {
  const thread = takeIdle() ?? startThread()
  const { port1: port, port2 } = new MessageChannel()
  const events = new EventEmitter()
  const fail = (error: Error) => events.emit('error', error)
  const end = () => {
    thread.off('error', fail).off('exit', end)
    port.close()
    events.emit('exit')
  }
  thread.on('error', fail).on('exit', end)
  thread.ref()
  port.on('message', (message: SqliteReply | Ended) => {
    if (message !== 'ended') return events.emit('message', message)
    thread.unref()
    idle.add(thread)
    end()
  })
  thread.postMessage({ port: port2, settings: workerData } satisfies Order, [port2])
  return { on: events.on.bind(events), postMessage: port.postMessage.bind(port) }
}

/** Tells the process of it, as of a new one. */
function takeIdle(): Worker | undefined {
  const [thread] = idle
  if (!thread) return undefined
  idle.delete(thread)
  EventEmitter.prototype.emit.call(process, 'worker', thread)
  return thread
}

function startThread(): Worker {
  const thread = new Worker(programPath('test/support/storage-thread'))
  thread.once('exit', () => idle.delete(thread))
  return thread
}
