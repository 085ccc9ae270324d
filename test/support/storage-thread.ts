import { type MessagePort, parentPort } from 'node:worker_threads'
import type { SqliteSettings } from '../../src/storage/sqlite/protocol.ts'
import { serveSqlite } from '../../src/storage/sqlite/thread.ts'

/** One gateway: its settings, and its end of the channel. */
export type Order = { readonly port: MessagePort; readonly settings: SqliteSettings }

/** The last message about a gateway: its files are closed. A gateway never gets a text from its storage thread. */
export type Ended = 'ended'

/** Serves one gateway after the other, each as a storage thread of its own would. */
parentPort?.on('message', ({ port, settings }: Order) => {
  const close = () => {
    port.postMessage('ended' satisfies Ended)
    port.close()
  }
  serveSqlite({ on: port.on.bind(port), postMessage: port.postMessage.bind(port), close }, settings)
  // Without a listener the thread of a gateway ends: the database could not be opened.
  if (port.listenerCount('message') === 0) close()
})
