import type { Catalog, ViewSelector } from '../catalog/catalog.ts'
import type { EventTable } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'

/** Notifies clients when a list in their view has changed, and only then. */
export type ListChanges = {
  watch(principal: Principal, selector: ViewSelector, onChange: (changed: readonly ChangeKind[]) => void): () => void
  close(): void
}

/** The kinds of lists in notifications. Templates belong to resources. */
export type ChangeKind = 'tools' | 'prompts' | 'resources'
type Hashes = Readonly<Record<ChangeKind, string>>

const kinds: readonly ChangeKind[] = ['tools', 'prompts', 'resources']
const gone: Hashes = { tools: 'gone', prompts: 'gone', resources: 'gone' }

export function toChangeMethod(kind: ChangeKind): string {
  return `notifications/${kind}/list_changed`
}

type Watcher = {
  readonly principal: Principal
  readonly selector: ViewSelector
  onChange(changed: readonly ChangeKind[]): void
  hashes: Hashes
}

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
    const { hashes } = watcher
    watcher.hashes = hashesOf(watcher)
    const changed = kinds.filter((kind) => watcher.hashes[kind] !== hashes[kind])
    if (changed.length > 0) watcher.onChange(changed)
  }

  /** A view that no longer exists has changed too. */
  function hashesOf({ principal, selector }: Pick<Watcher, 'principal' | 'selector'>): Hashes {
    try {
      const { tools, prompts, resources, templates } = parts.catalog.view(principal, selector).lists
      return { tools: tools.hash, prompts: prompts.hash, resources: `${resources.hash} ${templates.hash}` }
    } catch {
      return gone
    }
  }

  const { events } = parts
  const stops = (['tools-changed', 'config-changed', 'principals-changed'] as const).map((name) =>
    events.on(name, schedule),
  )
  return {
    watch(principal, selector, onChange) {
      const watcher: Watcher = { principal, selector, onChange, hashes: hashesOf({ principal, selector }) }
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
