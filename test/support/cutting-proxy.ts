import { createServer, connect as dial, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * What happens to the TCP connection on which the word is sent. `before` and `after` close it before or after the word
 * reaches the server. `silence` and `silence-after` leave it open for ever, without or with delivery of the word.
 */
export type Cut = 'before' | 'after' | 'silence' | 'silence-after'

export type CuttingProxy = {
  readonly port: number
  /** The same database, reached through the proxy. */
  before<Where extends { readonly databaseUrl?: string }>(place: Where): Where & { readonly databaseUrl: string }
  /** Interrupts the next TCP connection on which this word is sent. Resolves when this has happened. */
  cutAt(word: string, how: Cut): Promise<void>
  /** The proxy still accepts TCP connections, but passes no bytes in either direction until `resume`. No byte is lost. */
  pause(): void
  resume(): void
}

/** A TCP proxy in front of a server that interrupts one TCP connection at a chosen word. */
export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  let plan: { word: string; how: Cut; done(): void } | undefined
  let paused = false
  const server = createServer((client) => {
    const onward = dial(target, '127.0.0.1')
    for (const socket of [client, onward]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
      if (paused) socket.pause()
    }
    let silent = false
    client.on('data', (bytes) => {
      if (silent) return
      const cut = plan && bytes.includes(plan.word) ? plan : undefined
      if (!cut) return void onward.write(bytes)
      plan = undefined
      silent = cut.how === 'silence' || cut.how === 'silence-after'
      if (cut.how === 'after' || cut.how === 'silence-after') onward.write(bytes)
      if (!silent) client.destroy()
      if (cut.how === 'before') onward.destroy()
      cut.done()
    })
    onward.on('data', (bytes) => {
      if (!silent) client.write(bytes)
    })
    client.on('close', () => !silent && onward.end())
    onward.on('close', () => client.destroy())
  })
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port')
  return {
    port: address.port,
    before(place) {
      const url = new URL(place.databaseUrl ?? '')
      url.port = String(address.port)
      return { ...place, databaseUrl: url.href }
    },
    cutAt: (word, how) => new Promise((done) => (plan = { word, how, done })),
    pause() {
      paused = true
      for (const socket of sockets) socket.pause()
    },
    resume() {
      paused = false
      for (const socket of sockets) socket.resume()
    },
  }
}
