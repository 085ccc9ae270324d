import { isUtf8 } from 'node:buffer'
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../contract/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { parseDotenv } from '../lib/dotenv.ts'
import { readTrustedFile } from '../lib/file-trust.ts'
import type { Log } from '../lib/log.ts'
import type { ConnectionSpec } from './scopes.ts'
import { type Environment, isOwnVariable, listTemplates, parseTemplate } from './templates.ts'
import { watchFile } from './watch.ts'

/** Variables of the `envFile` that were added, changed or removed, and the connections whose templates read them. */
export type VariableChange = {
  readonly file: string
  readonly names: readonly string[]
  readonly connections: readonly string[]
}

type Values = ReadonlyMap<string, string>

/** A file that was read and is not in use yet. */
export type PreparedEnvFile = {
  readonly path: string | undefined
  readonly values: Values
  /** Why the newest content of the file is not in `values`. */
  readonly problem?: string
}

export type EnvFileParts = {
  readonly clock: Clock
  readonly log: Log
  readonly environment: Environment
  readonly first: PreparedEnvFile
  /** Called with the names whose value has changed and that the process does not override. */
  onChange(names: readonly string[], path: string): void
}

const mostBytes = 65_536
const none: Values = new Map()

/** The variables of a file in dotenv syntax. Throws if other users can change the file, or if it has a mistake. */
export function readEnvFile(path: string): Values {
  const bytes = readTrustedFile(path, mostBytes)
  const parsed = isUtf8(bytes) ? parseDotenv(bytes.toString('utf8')) : undefined
  if (parsed?.ok) return new Map([...parsed.values].filter(([name]) => !isOwnVariable(name)))
  const why = parsed === undefined ? `${path} is not UTF-8 text` : `${path}:${parsed.line}: ${parsed.message}`
  throw new GatewayError('config-invalid', why, { file: path })
}

export function toEnvPath(configFile: string, { envFile }: Pick<Config, 'envFile'>): string | undefined {
  return envFile === undefined ? undefined : resolve(dirname(configFile), envFile)
}

/** A `.env` file beside the configuration that nothing reads. */
export function findUnusedEnvFile(configFile: string, { envFile }: Pick<Config, 'envFile'>): string | undefined {
  const path = join(dirname(configFile), '.env')
  return envFile === undefined && existsSync(path) ? path : undefined
}

/** The connections whose templates read one of these variables. */
export function listUsers(specs: readonly ConnectionSpec[], names: readonly string[]): string[] {
  const wanted = new Set(names)
  return specs.filter(({ definition }) => listNames(definition).some((name) => wanted.has(name))).map(({ id }) => id)
}

/** The names of variables and secrets that a definition reads. */
export function listNames(definition: ConnectionSpec['definition']): string[] {
  return listTemplates(definition).flatMap(([, text]) => {
    const template = parseTemplate(text)
    const pieces = template.ok ? template.pieces : []
    return pieces.flatMap((piece) => (piece.kind === 'variable' ? [piece.name] : []))
  })
}

/** Reads the file of a configuration that is about to take effect. Throws if the file cannot be used. */
export async function prepareEnvFile(path: string | undefined): Promise<PreparedEnvFile> {
  return { path, values: path === undefined ? none : readEnvFile(path) }
}

/** The `envFile` in use. It is watched: a version that cannot be used is reported, and the earlier values stay. */
export function createEnvFile({ clock, log, environment, first, onChange }: EnvFileParts) {
  let inUse = first
  let watcher: Promise<{ close(): Promise<void> }> | undefined
  let closed = false
  watchInstead(first.path)

  function use(next: PreparedEnvFile): void {
    const before = inUse
    inUse = next
    if (before.path !== next.path) watchInstead(next.path)
    const changed = listDifferent(before.values, next.values).filter((name) => environment[name] === undefined)
    const path = next.path ?? before.path
    if (changed.length > 0 && path !== undefined) onChange(changed, path)
  }

  function watchInstead(path: string | undefined): void {
    void watcher?.then((old) => old.close()).catch(() => undefined)
    watcher = path === undefined ? undefined : watchFile({ file: path, clock, log, onQuiet: () => void reread(path) })
    watcher?.catch(() => log.warn({ file: path }, 'The envFile cannot be watched; changes apply after a restart'))
  }

  async function reread(path: string): Promise<void> {
    if (closed || inUse.path !== path) return
    use(await prepareOrKeep(path))
  }

  /** A file that cannot be used while the gateway runs is reported. The earlier values stay. */
  function prepareOrKeep(path: string | undefined): Promise<PreparedEnvFile> {
    return prepareEnvFile(path).catch((error: unknown) => {
      const { code, message } = toGatewayError(error)
      const problem = `${message}; the earlier values of the envFile stay in use`
      if (problem !== inUse.problem) log.warn({ file: path, code }, problem)
      return { path, values: inUse.values, problem }
    })
  }

  return {
    use,
    prepareOrKeep,
    path: () => inUse.path,
    values: () => inUse.values,
    notices: (): string[] => (inUse.problem === undefined ? [] : [inUse.problem]),
    async close(): Promise<void> {
      closed = true
      await watcher?.then((active) => active.close()).catch(() => undefined)
    },
  }
}

function listDifferent(before: Values, after: Values): string[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].filter((name) => before.get(name) !== after.get(name))
}
