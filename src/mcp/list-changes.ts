import type { Catalog, ViewSelector } from '../catalog/catalog.ts'
import type { EventTable } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'

/** Tells clients when, and only when, what they would be shown is no longer what they were shown. */
export type ListChanges = {
  watch(principal: Principal, selector: ViewSelector, onChange: () => void): () => void
  close(): void
}

type Watcher = { readonly principal: Principal; readonly selector: ViewSelector; onChange(): void; hash: string }

const gatherMs = 50

export function createListChanges(parts: {
  catalog: Pick<Catalog, 'view'>
  events: Emitter<EventTable>
  clock: Clock
}): ListChanges {
  const watchers = new Set<Watcher>()
  let cancel: (() => void) | undefined

  function schedule(): void {
    cancel ??= parts.clock.after(gatherMs, () => {
      cancel = undefined
      for (const watcher of watchers) compare(watcher)
    })
  }

  function compare(watcher: Watcher): void {
    const hash = hashOf(watcher)
    if (hash === watcher.hash) return
    watcher.hash = hash
    watcher.onChange()
  }

  /** A view that is gone has changed as well. */
  function hashOf({ principal, selector }: Pick<Watcher, 'principal' | 'selector'>): string {
    try {
      return parts.catalog.view(principal, selector).hash
    } catch {
      return 'gone'
    }
  }

  const stops = [parts.events.on('tools-changed', schedule), parts.events.on('config-changed', schedule)]
  return {
    watch(principal, selector, onChange) {
      const watcher: Watcher = { principal, selector, onChange, hash: hashOf({ principal, selector }) }
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    close() {
      cancel?.()
      for (const stop of stops) stop()
      watchers.clear()
    },
  }
}
