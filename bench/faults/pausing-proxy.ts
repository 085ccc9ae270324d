import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export type PausingProxy = {
  readonly port: number
  /** Sockets are still accepted, but no bytes are forwarded until `resume`. */
  pause(): void
  resume(): void
  close(): void
}

/** A TCP proxy in front of a database that can stop forwarding. */
export async function startPausingProxy(target: number): Promise<PausingProxy> {
  const sockets = new Set<Socket>()
  let paused = false
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      if (paused) from.pause()
      from.on('data', (bytes) => to.write(bytes))
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    pause() {
      paused = true
      for (const socket of sockets) socket.pause()
    },
    resume() {
      paused = false
      for (const socket of sockets) socket.resume()
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
