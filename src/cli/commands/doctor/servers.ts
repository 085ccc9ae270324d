import { accessSync, constants, statSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import {
  type ConnectionSpec,
  connections,
  createEnvironmentLookup,
  type Environment,
  isTrusted,
  originOf,
  resolveDefinition,
} from '../../../config/config.ts'
import type { Config } from '../../../contract/config.ts'
import { toGatewayError } from '../../../contract/errors.ts'
import type { StdioServer } from '../../../contract/server.ts'
import { codeOf, type Finding, note, ok, problem } from './finding.ts'

type Place = {
  readonly config: Config
  readonly file: string
  /** The variables of this process and of the `envFile`. */
  readonly environment: Environment
  readonly listed: readonly string[]
  /** Names of secrets that a running gateway has. */
  readonly secrets: ReadonlySet<string>
}

/** Checks the definitions of servers without starting or calling them. */
export async function checkServers(place: Place, connected: ReadonlySet<string>): Promise<Finding[]> {
  const specs = connections(place.config).filter((spec) => spec.definition.enabled && !connected.has(spec.id))
  const findings = await Promise.all(specs.map((spec) => checkServer(place, spec)))
  return [...findings, ...noteRights(place.config)]
}

export function toCheck(name: string): string {
  return `server ${name}`
}

async function checkServer(place: Place, spec: ConnectionSpec): Promise<Finding> {
  const check = toCheck(spec.id)
  const variables = createEnvironmentLookup(place.environment, place.listed)
  const withheld = new Set<string>()
  try {
    const { definition, missing } = resolveDefinition(spec.definition, (name, key) => {
      const origin = originOf(spec.origins, key)
      if (origin !== undefined && isTrusted(place.config, origin)) return variables(name)
      withheld.add(name)
      return undefined
    })
    const nowhere = missing.filter((name) => !place.secrets.has(name))
    const notTheirs = nowhere.filter((name) => withheld.has(name))
    if (notTheirs.length > 0) return explainWithheld(spec, notTheirs)
    if (nowhere.length > 0) return explainMissing(place, spec, nowhere)
    if (missing.length > 0) return ok(check, `The gateway has the secrets of ${spec.name}`)
    if (definition.transport === 'stdio') return checkCommand(place, spec, definition)
    if (!spec.trusted)
      return ok(
        check,
        `${spec.name} belongs to ${spec.scope}: not checked here, because only the gateway may connect to it`,
      )
    if (dependsOnVariables(spec, definition.url))
      return ok(
        check,
        `The address of ${spec.name} contains variables: not checked here, because only the gateway may connect to it`,
      )
    return await checkUrl(place, spec, definition.url)
  } catch (error) {
    return problem(check, toGatewayError(error).message, `Correct servers.${spec.name} in ${place.file}`)
  }
}

function explainWithheld(spec: ConnectionSpec, missing: readonly string[]): Finding {
  const names = missing.map((name) => `\${${name}}`).join(', ')
  const message = `${spec.name} needs ${names}: only entries of administrators may use environment variables of the gateway`
  const fixes = missing.map((name) => `sallyport secrets set ${name} --scope ${spec.scope}`)
  return problem(toCheck(spec.id), message, fixes.join(', then '))
}

function explainMissing(
  { config, file, environment, listed }: Place,
  spec: ConnectionSpec,
  missing: readonly string[],
): Finding {
  const unlisted = missing.filter((name) => !listed.includes(name))
  const unset = missing.filter((name) => environment[name] === undefined)
  const reasons = [
    ...(unset.length > 0 ? [`${unset.join(', ')} is not set`] : []),
    ...(unlisted.length > 0 ? [`${unlisted.join(', ')} is not listed under \`environment\``] : []),
  ]
  const fixes = [
    ...(unlisted.length > 0
      ? [`add to ${file}: environment: [${[...config.environment, ...unlisted].join(', ')}]`]
      : []),
    ...unset.map((name) => `export ${name}=… before sallyport serve`),
  ]
  const names = missing.map((name) => `\${${name}}`).join(', ')
  return problem(toCheck(spec.id), `${spec.name} needs ${names}: ${reasons.join('; ')}`, fixes.join(', then '))
}

function checkCommand({ file }: Place, spec: ConnectionSpec, definition: StdioServer): Finding {
  const check = toCheck(spec.id)
  const key = `servers.${spec.name}`
  if (definition.cwd !== undefined && !isFolder(definition.cwd)) {
    const message = `The working folder ${definition.cwd} of ${spec.name} does not exist`
    return problem(check, message, `mkdir -p '${definition.cwd}', or correct ${key}.cwd in ${file}`)
  }
  const found = findCommand(definition.command, definition.env.PATH ?? process.env.PATH ?? '', definition.cwd)
  if (found !== undefined) return ok(check, `The command of ${spec.name} is ${found}`)
  const message = `The command ${definition.command} of ${spec.name} was not found`
  return problem(
    check,
    message,
    `${installers[definition.command] ?? 'Install it'}, or correct ${key}.command in ${file}`,
  )
}

const installers: Readonly<Record<string, string>> = {
  npx: 'Install Node from https://nodejs.org',
  uvx: 'Install uv: curl -LsSf https://astral.sh/uv/install.sh | sh',
  uv: 'Install uv: curl -LsSf https://astral.sh/uv/install.sh | sh',
  docker: 'Install Docker from https://docs.docker.com/get-docker',
  bunx: 'Install Bun from https://bun.sh',
  deno: 'Install Deno from https://deno.com',
}

/** Finds the program of a command by its path or in PATH, like the system. Nothing is run. */
export function findCommand(command: string, path: string, cwd: string = process.cwd()): string | undefined {
  const candidates = /[\\/]/.test(command)
    ? [isAbsolute(command) ? command : resolve(cwd, command)]
    : path.split(delimiter).map((folder) => join(folder || cwd, command))
  return candidates.find(isProgram)
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/**
 * Whether the host contains variables. A DNS lookup of such a name would send the values of the variables to the author of
 * the file, and the file may come from a foreign repository.
 */
function dependsOnVariables({ definition }: ConnectionSpec, filled: string): boolean {
  if (definition.transport === 'stdio') return false
  const other = definition.url.replace(/\$\{[^}]*\}/g, 'x')
  return !URL.canParse(other) || !URL.canParse(filled) || new URL(other).host !== new URL(filled).host
}

async function checkUrl({ file }: Place, spec: ConnectionSpec, text: string): Promise<Finding> {
  const check = toCheck(spec.id)
  const edit = `correct servers.${spec.name}.url in ${file}`
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    return problem(check, `The url of ${spec.name} is not an http or https address`, edit.replace('correct', 'Correct'))
  }
  const { hostname, port, protocol, host } = new URL(text)
  const failed = await tryConnect(hostname.replace(/^\[|\]$/g, ''), Number(port) || (protocol === 'https:' ? 443 : 80))
  if (failed === undefined) return ok(check, `${host} of ${spec.name} can be reached`)
  const message = `${host} of ${spec.name} is unreachable: ${reasons[failed] ?? failed}`
  return problem(check, message, `Start that server, or ${edit}; then: sallyport servers reconnect ${spec.name}`)
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'the name does not exist in DNS',
  EAI_AGAIN: 'the DNS lookup failed',
  ETIMEDOUT: 'no answer within 3 s',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
}

function tryConnect(host: string, port: number): Promise<string | undefined> {
  const { promise, resolve: settle } = Promise.withResolvers<string | undefined>()
  const socket = connect({ host, port, timeout: 3000 })
  socket.once('connect', () => end(undefined))
  socket.once('timeout', () => end('ETIMEDOUT'))
  socket.once('error', (error) => end(codeOf(error)))
  return promise

  function end(failed: string | undefined): void {
    settle(failed)
    socket.destroy()
  }
}

function noteRights(config: Config): Finding[] {
  const names = connections(config)
    .filter((spec) => spec.definition.enabled && spec.definition.transport === 'stdio')
    .map((spec) => spec.id)
  if (names.length === 0) return []
  const message = `Commands run with the rights of the gateway and can read its files: ${names.join(', ')}`
  return [note('rights', message, 'Run the gateway as a separate user, not as the user of agents with a shell')]
}
