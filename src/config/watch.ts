import { watch } from 'chokidar'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

export type WatchParts = { readonly file: string; readonly clock: Clock; readonly log: Log; onQuiet(): void }

/** Milliseconds without a change before a file is read, because editors write in several steps. */
const quietMs = 100

/** Calls `onQuiet` after a file was written, replaced, removed or put back. Resolves when the watcher is active. */
export async function watchFile({ file, clock, log, onQuiet }: WatchParts): Promise<{ close(): Promise<void> }> {
  let cancel = (): void => undefined
  const watcher = watch(file, { ignoreInitial: true, persistent: false })
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  watcher.on('ready', resolve)
  watcher.on('all', () => {
    cancel()
    cancel = clock.after(quietMs, onQuiet)
  })
  watcher.on('error', (error) => {
    log.warn({ file, error: String(error) }, 'The file cannot be watched; changes apply after a restart')
    resolve()
  })
  await ready
  return {
    async close() {
      cancel()
      await watcher.close()
    },
  }
}
