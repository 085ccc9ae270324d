export type Emitter<Table> = {
  emit<Name extends keyof Table>(name: Name, event: Table[Name]): void
  on<Name extends keyof Table>(name: Name, listener: (event: Table[Name]) => void): () => void
}

/** An error in one listener is reported to `onError`. The other listeners still receive the event. */
export function createEmitter<Table>(onError: (error: unknown) => void): Emitter<Table> {
  const listeners = new Map<keyof Table, Set<(event: never) => void>>()
  return {
    emit(name, event) {
      for (const listener of listeners.get(name) ?? []) {
        try {
          listener(event as never) // `on` stored the listener under the same name
        } catch (error) {
          onError(error)
        }
      }
    },
    on(name, listener) {
      const set = listeners.get(name) ?? new Set()
      listeners.set(name, set)
      set.add(listener)
      return () => set.delete(listener)
    },
  }
}
