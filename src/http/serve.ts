import { readFile, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { configSchema, findConfigFile, readConfig, schemaFile, starterConfig } from '../config/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../gateway/gateway.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { createFile, replaceFile } from '../lib/durable-file.ts'
import { findDataWeaknesses, toUnsafe } from '../lib/file-trust.ts'
import { createIds } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { makePrivateFolder } from '../lib/private-folder.ts'
import { type Listener, startListener } from './listener.ts'
import { setupPath } from './setup-page.ts'

export type ServeOptions = Omit<GatewayOptions, 'configFile'> & {
  readonly configFile?: string | undefined
  /** Overrides the configured port; 0 chooses a free port. */
  readonly port?: number | undefined
  /** If no configuration exists, the first start writes one with a demo server. */
  readonly demo?: boolean | undefined
  /** Started by `stdio`: `unused` may end it, and it uses a free port instead of the default port. */
  readonly lingers?: boolean | undefined
}

export type RunningGateway = {
  readonly url: string
  readonly mcpUrl: string
  /** Address of the dashboard for people. */
  readonly dashboardUrl: string
  readonly gateway: Gateway
  /** A new one-time link that creates the first administrator; undefined if one exists. Invalidates the previous link. */
  setupUrl(): string | undefined
  /**
   * Resolves when no request was open for `milliseconds`; before the first request, the time is `first`. From then on the
   * gateway accepts no requests, so that no request is interrupted.
   */
  unused(wait: { milliseconds: number; first: number }): Promise<void>
  close(): Promise<void>
}

/** Starts a gateway with its listener and data folder, and writes `gateway.json` for the CLI. */
export async function startGateway(options: ServeOptions): Promise<RunningGateway> {
  const { clock = systemClock, ids = createIds(), log = silentLog, environment = process.env } = options
  const dataFolder = resolve(options.dataFolder)
  makePrivateFolder(dataFolder)
  demandSafe(dataFolder)
  const { file, isNew } = await configFileFor(options, dataFolder, environment)
  if (dirname(file) === dataFolder) await writeSchema(dataFolder)
  const databaseUrl = options.databaseUrl ?? (environment.SALLYPORT_DATABASE_URL || undefined)
  const given = {
    ...options,
    clock,
    log,
    environment,
    configFile: file,
    configIsNew: isNew,
    dataFolder,
    databaseUrl,
  }
  const gateway = await createGateway(given)
  const note = join(dataFolder, 'gateway.json')
  let listener: Listener | undefined
  /** In this order, running calls can still finish or get an error answer. */
  async function close(): Promise<void> {
    listener?.stop()
    // Before the lock is released: after that, the file may belong to the next gateway.
    await rm(note, { force: true })
    await gateway.close()
    await listener?.close()
  }
  try {
    const { listen } = gateway.config.current()
    const started = await listenOn(await portsFor(options, file, listen.port), (port) =>
      startListener({ gateway, listen: { ...listen, port }, clock: gateway.clock, ids, log }),
    )
    listener = started
    gateway.webhooks.servedAt(started.url)
    const lingers = options.lingers === true
    const facts = { url: started.url, pid: process.pid, instance: gateway.instance, ...(lingers && { lingers }) }
    await replaceFile(note, JSON.stringify(facts))
    const address = listen.publicUrl?.replace(/\/$/, '') ?? started.url
    return {
      url: started.url,
      mcpUrl: `${address}/mcp`,
      dashboardUrl: `${address}/`,
      setupUrl() {
        const code = gateway.identity.setup.code()
        return code && `${address}${setupPath}?code=${code}`
      },
      gateway,
      unused: (wait) => whenUnused(started, clock, wait),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function demandSafe(folder: string): void {
  const [weakness] = findDataWeaknesses(folder)
  if (weakness) throw toUnsafe(weakness)
}

/** A gateway started by `stdio` uses a free port, unless the configuration names a port that is not in use. */
async function portsFor(options: ServeOptions, file: string, configured: number): Promise<readonly number[]> {
  if (options.port !== undefined) return [options.port]
  if (!options.lingers) return [configured]
  const reading = await readConfig(file)
  const named = reading.ok && NamedPort.safeParse(reading.value).success
  return named ? [configured, 0] : [0]
}

const NamedPort = z.looseObject({ listen: z.looseObject({ port: z.number() }) })

async function listenOn(ports: readonly number[], start: (port: number) => Promise<Listener>): Promise<Listener> {
  const [port = 0, ...others] = ports
  return start(port).catch((error: unknown) => {
    if (others.length === 0 || toGatewayError(error).code !== 'port-taken') throw error
    return listenOn(others, start)
  })
}

function whenUnused(listener: Listener, clock: Clock, wait: { milliseconds: number; first: number }): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const startedAt = clock.monotonic()
  let used = false
  const look = () => {
    const quiet = listener.quietFor()
    used ||= quiet === undefined || quiet < clock.monotonic() - startedAt
    const limit = used ? wait.milliseconds : Math.max(wait.milliseconds, wait.first)
    const left = limit - (quiet ?? 0)
    if (quiet === undefined || left > 0) return void clock.after(Math.min(1000, Math.max(100, left)), look)
    // In the same tick, so that a new request is refused instead of interrupted.
    listener.stop()
    resolve()
  }
  look()
  return promise
}

async function configFileFor(
  options: ServeOptions,
  dataFolder: string,
  environment: NodeJS.ProcessEnv,
): Promise<{ file: string; isNew: boolean }> {
  const found = await findConfigFile({ explicit: options.configFile, environment, cwd: process.cwd(), dataFolder })
  if (found !== undefined) return { file: found, isNew: false }
  const file = join(dataFolder, 'sallyport.yaml')
  const text = starterConfig({ demo: options.demo ? demoServer() : undefined, port: !options.lingers })
  return { file, isNew: await createFile(file, text) }
}

/** Written at every start, because a newer version may have more settings. */
async function writeSchema(folder: string): Promise<void> {
  const path = join(folder, schemaFile)
  const text = `${JSON.stringify(configSchema(), null, 2)}\n`
  const known = await readFile(path, 'utf8').catch(() => undefined)
  if (known !== text) await replaceFile(path, text)
}

/** Path of the demo server in the package; it differs between sources and bundle. */
function demoServer(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const root = import.meta.url.endsWith('.ts') ? join(here, '..', '..') : join(here, '..')
  return join(root, 'examples', 'demo-server', 'server.mjs')
}
