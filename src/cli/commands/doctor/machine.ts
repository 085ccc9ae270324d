import { accessSync, constants, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Listen } from '../../../contract/config.ts'
import { toSystemReason } from '../../../contract/system-error.ts'
import { findConfigWeakness, findDataWeaknesses, quote } from '../../../lib/file-trust.ts'
import type { GatewayFile } from '../../client/data-folder.ts'
import { codeOf, type Finding, note, ok, problem, warning } from './finding.ts'

const oldestNode = [22, 19] as const

export function checkNode(version: string = process.versions.node): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const enough = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])
  if (enough) return ok('node', `Node ${version}`)
  return problem(
    'node',
    `Node ${version} is too old: at least ${oldestNode.join('.')} is required`,
    'Install Node 24 from https://nodejs.org',
  )
}

/** The data folder contains keys, tokens and the audit. */
export function checkDataFolder(folder: string, running: GatewayFile | undefined): Finding[] {
  const mode = modeOf(folder)
  if (mode === undefined)
    return [note('data folder', `${folder} does not exist yet; the first start creates it`, 'sallyport serve')]
  if (!mode.isFolder) return [problem('data folder', `${folder} is not a folder`, 'Choose another one with --data')]
  return [checkWritable(folder), ...checkOwn(folder), ...checkModes(folder, mode.bits), checkLock(folder, running)]
}

/** Weaknesses for which commands refuse the folder and `serve` does not start. */
function checkOwn(folder: string): Finding[] {
  return findDataWeaknesses(folder).map(({ message, fix }) => problem('data folder', message, fix))
}

/** A user who can write the configuration can run commands as the gateway's user. */
export function checkConfigFile(file: string | undefined): Finding[] {
  const weakness = file === undefined ? undefined : findConfigWeakness(file)
  if (!weakness) return []
  return [problem('configuration', `${weakness.message}. Other users could run commands as the gateway`, weakness.fix)]
}

function checkWritable(folder: string): Finding {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return ok('data folder', `${folder} can be written`)
  } catch (error) {
    const message = `${folder} cannot be written by this user: ${toSystemReason(error)}`
    return problem('data folder', message, `sudo chown -R "$(id -un)" ${quote(folder)} && chmod u+rwx ${quote(folder)}`)
  }
}

function checkModes(folder: string, bits: number): Finding[] {
  const findings: Finding[] = []
  if ((bits & 0o007) !== 0) {
    findings.push(
      warning('data folder', `${folder} is accessible to every user of this machine`, `chmod 700 ${quote(folder)}`),
    )
  }
  const token = join(folder, 'admin-token')
  if (((modeOf(token)?.bits ?? 0) & 0o077) !== 0) {
    const message = `${token} can be read by other users, who could configure the gateway`
    findings.push(warning('data folder', message, `chmod 600 ${quote(token)}`))
  }
  const key = join(folder, 'key')
  if (((modeOf(key)?.bits ?? 0) & 0o077) !== 0) {
    const message = `${key} can be read by other users, who could decrypt every secret in a copy of the database`
    findings.push(warning('data folder', message, `chmod 600 ${quote(key)}`))
  }
  return findings
}

function checkLock(folder: string, running: GatewayFile | undefined): Finding {
  if (running === undefined) return ok('lock', `No gateway uses ${folder}`)
  if (isAlive(running.pid)) return ok('lock', `In use by the gateway with process id ${running.pid} at ${running.url}`)
  const message = `The gateway with process id ${running.pid} did not shut down cleanly; the next start cleans up`
  return note('lock', message, 'sallyport serve')
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** Listens on the port for a moment. `ours` is the address of the running gateway of this data folder. */
export async function checkPort(
  { host, port }: Pick<Listen, 'host' | 'port'>,
  ours: string | undefined,
): Promise<Finding> {
  if (port === 0) return ok('port', 'The system chooses a free port')
  if (ours !== undefined && portOf(ours) === port) return ok('port', `Port ${port} is used by this gateway`)
  const code = await tryListen(host, port)
  if (code === undefined) return ok('port', `Port ${port} on ${host} is free`)
  if (code === 'EADDRINUSE') {
    const message = `Port ${port} on ${host} is used by another program`
    return problem('port', message, `sallyport serve --port ${port + 1}, or stop the other program: lsof -i :${port}`)
  }
  if (code === 'EACCES') {
    return problem('port', `This user is not allowed to listen on port ${port}`, 'sallyport serve --port 4777')
  }
  const message = `The gateway cannot listen on ${host}:${port} (${code})`
  return problem(
    'port',
    message,
    'Set listen.host in the configuration to an address of this machine, such as 127.0.0.1',
  )
}

function tryListen(host: string, port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const server = createServer()
  server.once('error', (error) => resolve(codeOf(error)))
  server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  return promise
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url)
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

function modeOf(path: string): { bits: number; isFolder: boolean } | undefined {
  try {
    const stats = statSync(path)
    return { bits: stats.mode & 0o777, isFolder: stats.isDirectory() }
  } catch {
    return undefined
  }
}
