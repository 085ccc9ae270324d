import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A wire between the gateway and a server that a test can cut, silence and lead elsewhere. */
export type Relay = AsyncDisposable & {
  readonly url: string
  /** The JSON-RPC methods that passed on their way to the server, in order; other requests by their HTTP method. */
  requests(): string[]
  connections(): number
  leadTo(target: string): void
  /** Breaks what is connected; new connections are taken. */
  cut(): void
  /** Takes the bytes and passes none on, as a machine that lost its power would. */
  silence(silent: boolean): void
  /** Nobody listens any more. */
  stop(): Promise<void>
  /** Listens again at the same address. */
  start(): Promise<void>
}

export async function startRelay(target: string): Promise<Relay> {
  const sockets = new Set<Socket>()
  let goal = new URL(target)
  let passed = ''
  let count = 0
  let silent = false
  let server: Server | undefined
  let port = 0

  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  }
  const take = (near: Socket) => {
    count += 1
    const far = connect(Number(goal.port), goal.hostname)
    keep(near)
    keep(far)
    near.on('data', (chunk) => {
      if (silent) return
      passed += `${chunk.toString('latin1')}\n`
      far.write(chunk)
    })
    far.on('data', (chunk) => {
      if (!silent) near.write(chunk)
    })
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  }
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const stop = async () => {
    const closing = server
    server = undefined
    cut()
    if (closing) await new Promise((resolve) => closing.close(resolve))
  }
  const start = async () => {
    server = createServer(take).listen(port, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('No port')
    port = address.port
  }
  await start()
  return {
    url: `http://127.0.0.1:${port}${goal.pathname}`,
    requests: () =>
      [...passed.matchAll(/"method":"([^"]+)"|^(GET|DELETE) /gm)].map(([, method, verb]) => method ?? verb ?? ''),
    connections: () => count,
    leadTo(next) {
      goal = new URL(next)
    },
    cut,
    silence(wanted) {
      silent = wanted
    },
    stop,
    start,
    [Symbol.asyncDispose]: stop,
  }
}
