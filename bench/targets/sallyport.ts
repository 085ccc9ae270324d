import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { z } from 'zod'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { startProgram } from '../lib/program.ts'
import { fillAudit } from './fill-audit.ts'
import type { EchoServer, Setting, Target } from './target.ts'

const bin = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))
const run = promisify(execFile)

/** The gateway as in production: the bundle, a token for every request, rules, and the audit on disk. */
export function startSallyport(setting: Setting): Promise<Target> {
  return startWith({ env: {} }, setting)
}

/** The build of another checkout. */
export function startSallyportOf(checkout: string): (setting: Setting) => Promise<Target> {
  return (setting) => startWith({ env: {}, program: join(checkout, 'bin', 'sallyport.js') }, setting)
}

/** The gateway with PostgreSQL on this machine, which writes every commit to disk. */
export async function startSallyportOnPostgres(setting: Setting): Promise<Target> {
  const database = await startPostgresServer({ durable: true })
  try {
    const target = await startWith({ env: { SALLYPORT_DATABASE_URL: database.url() } }, setting)
    return {
      ...target,
      async close() {
        await target.close()
        await database.close()
      },
    }
  } catch (error) {
    await database.close()
    throw error
  }
}

type Start = { readonly env: Readonly<Record<string, string>>; readonly program?: string }

async function startWith({ env, program: file = bin }: Start, setting: Setting): Promise<Target> {
  const { folder, servers, entries, profile } = setting
  await mkdir(folder, { recursive: true })
  const config = join(folder, 'sallyport.json')
  const data = join(folder, 'data')
  const tokenFile = join(folder, 'token')
  await writeFile(config, JSON.stringify(toConfig(servers)))
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const args = [...profiling, file, 'serve', '--config', config, '--data', data, '--port', '0']
  const start = () => startProgram({ args, env, cwd: folder })

  let program = await start()
  // Each start of this target has a new PostgreSQL database.
  if (!existsSync(tokenFile) || 'SALLYPORT_DATABASE_URL' in env)
    await createToken(file, data)
      .then((made) => writeFile(tokenFile, made, { mode: 0o600 }))
      .catch(async (error) => {
        await program.stop()
        throw error
      })
  const token = await readFile(tokenFile, 'utf8')
  const url = (): string => `${program.url}/mcp`
  if (entries !== undefined) {
    await fillAudit({ way: toWay(url(), token), tool: `${servers[0].name}_echo`, stop: program.stop, data, entries })
    program = await start()
  }
  return {
    way: toWay(url(), token),
    pid: program.pid,
    toolName: (server, tool) => `${server}_${tool}`,
    close: program.stop,
  }
}

function toWay(url: string, token: string): Target['way'] {
  return { kind: 'http', url, headers: { authorization: `Bearer ${token}` } }
}

function toConfig(servers: readonly EchoServer[]): object {
  return {
    listen: { port: 0 },
    servers: Object.fromEntries(servers.map(({ name, ...server }) => [name, server])),
    rules: [
      { tools: '*_delete_*', action: 'deny' },
      { tools: '*', risk: 'write', action: 'ask' },
      { tools: '*_write', action: 'allow' },
    ],
    // High limits: results of one megabyte must not be cut, and calls must not be throttled.
    limits: { result: 4_194_304, callsPerMinute: 1_000_000_000, concurrent: 100_000 },
  }
}

const Made = z.object({ token: z.string() })

async function createToken(file: string, data: string): Promise<string> {
  const { stdout } = await run(process.execPath, [
    file,
    'tokens',
    'create',
    '--agent',
    'bench',
    '--json',
    '--data',
    data,
  ])
  return Made.parse(JSON.parse(stdout)).token
}
