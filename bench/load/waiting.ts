import { idOf } from './check.ts'

/** Assigns the answers of one stream to their requests. */
export function createWaiting() {
  const waiting = new Map<number, PromiseWithResolvers<Buffer>>()
  return {
    expect(id: number): Promise<Buffer> {
      const entry = Promise.withResolvers<Buffer>()
      waiting.set(id, entry)
      return entry.promise
    },
    receive(message: Buffer): void {
      const id = idOf(message)
      if (id === undefined) return
      waiting.get(id)?.resolve(message)
      waiting.delete(id)
    },
    fail(error: Error): void {
      for (const entry of waiting.values()) entry.reject(error)
      waiting.clear()
    },
  }
}
