import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findConfigFile, starterConfig } from '../config/config.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../gateway/gateway.ts'
import { systemClock } from '../lib/clock.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { createIds } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { type Listener, startListener } from './listener.ts'

export type ServeOptions = Omit<GatewayOptions, 'configFile'> & {
  readonly configFile?: string | undefined
  /** Instead of the configured port; 0 takes a free one. */
  readonly port?: number | undefined
  /** A first start without a configuration gets one with a demo server in it. */
  readonly demo?: boolean | undefined
}

export type RunningGateway = {
  readonly url: string
  readonly mcpUrl: string
  readonly gateway: Gateway
  readonly firstStart: boolean
  close(): Promise<void>
}

/** A gateway with its listener, its data folder and the note by which the CLI finds it. */
export async function startGateway(options: ServeOptions): Promise<RunningGateway> {
  const { clock = systemClock, ids = createIds(), log = silentLog, environment = process.env } = options
  const dataFolder = resolve(options.dataFolder)
  await mkdir(dataFolder, { recursive: true, mode: 0o700 })
  const { file, isNew } = await configFileFor(options, dataFolder, environment)
  const gateway = await createGateway({ ...options, clock, ids, log, environment, configFile: file, dataFolder })
  const note = join(dataFolder, 'gateway.json')
  let listener: Listener | undefined
  /** In this order calls under way still finish, or end with an answer that says why. */
  async function close(): Promise<void> {
    listener?.stop()
    await gateway.close()
    await listener?.close()
    await rm(note, { force: true })
  }
  try {
    const { listen } = gateway.config.current()
    const port = options.port ?? listen.port
    listener = await startListener({ gateway, listen: { ...listen, port }, clock, ids, log })
    const facts = { url: listener.url, pid: process.pid, instance: gateway.instance }
    await replaceFile(note, JSON.stringify(facts))
    return {
      url: listener.url,
      mcpUrl: `${listen.publicUrl?.replace(/\/$/, '') ?? listener.url}/mcp`,
      gateway,
      firstStart: isNew,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function configFileFor(
  options: ServeOptions,
  dataFolder: string,
  environment: NodeJS.ProcessEnv,
): Promise<{ file: string; isNew: boolean }> {
  const found = await findConfigFile({ explicit: options.configFile, environment, cwd: process.cwd(), dataFolder })
  if (found !== undefined) return { file: found, isNew: false }
  const file = join(dataFolder, 'sallyport.yaml')
  await writeFile(file, starterConfig({ demo: options.demo ? demoServer() : undefined }), { mode: 0o600, flag: 'wx' })
  return { file, isNew: true }
}

/** Stands in the package, beside the sources and beside the bundle. */
function demoServer(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const root = import.meta.url.endsWith('.ts') ? join(here, '..', '..') : join(here, '..')
  return join(root, 'examples', 'demo-server', 'server.mjs')
}
