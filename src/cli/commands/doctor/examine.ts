import { toGatewayError } from '../../../contract/errors.ts'
import { demandOwnFolder, findGatewayFile, type GatewayFile } from '../../client/data-folder.ts'
import type { Settings } from '../../client/settings.ts'
import type { Context } from '../command.ts'
import { checkConfiguration, readVariables } from './configuration.ts'
import { type Finding, problem } from './finding.ts'
import {
  askGateway,
  checkAnchors,
  checkGateway,
  checkNotices,
  checkRepositories,
  checkRetention,
  checkStates,
  listConnected,
} from './gateway.ts'
import { checkConfigFile, checkDataFolder, checkNode, checkPort, isAlive } from './machine.ts'
import { checkPeople } from './people.ts'
import { checkServers } from './servers.ts'

/** Options that `serve` would get. */
type Chosen = { readonly config?: string | undefined; readonly port?: number | undefined }

/** Runs the checks in order: later checks use the results of earlier ones. */
export async function examine({ settings, request }: Context, { config: explicit, port }: Chosen): Promise<Finding[]> {
  const local = findLocal(settings)
  const expected = settings.url !== undefined || (local !== undefined && isAlive(local.pid))
  const running = await askGateway(expected, () => request('Asking the gateway', (client) => client.status()))
  const used = running.kind === 'answers' ? running.status.config.file : undefined
  const configuration = await checkConfiguration(explicit ?? used, settings.dataFolder)
  const findings = [checkNode(), ...configuration.findings, ...checkConfigFile(configuration.file)]
  findings.push(...checkDataFolder(settings.dataFolder, local), ...checkTrust(settings))
  const { config, file } = configuration
  const listen = { host: config?.listen.host ?? '127.0.0.1', port: port ?? config?.listen.port ?? 4777 }
  const ours = running.kind === 'answers' && running.status.instance === local?.instance ? local.url : undefined
  findings.push(await checkPort(listen, ours))
  findings.push(
    checkGateway(running),
    ...checkAnchors(running),
    ...checkRetention(running),
    ...checkRepositories(running),
    ...checkNotices(running),
  )
  if (running.kind === 'answers') findings.push(...(await checkPeople(request)))
  if (config && file !== undefined) {
    const names = running.kind === 'answers' ? await listSecrets(request) : []
    const variables = readVariables(file, config)
    findings.push(...variables.findings)
    const place = { config, file, ...variables, secrets: new Set(names) }
    findings.push(...(await checkServers(place, listConnected(running))))
  }
  const explained = new Set(findings.filter((finding) => finding.status === 'problem').map((finding) => finding.check))
  const states = checkStates(running.kind === 'answers' ? running.status.servers : [], explained)
  // The state of a server in the running gateway replaces the check of its command.
  const better = new Set(states.map((finding) => finding.check))
  return [...findings.filter((finding) => finding.status !== 'ok' || !better.has(finding.check)), ...states]
}

/** Ignores the `gateway.json` of a folder that does not belong to this user. */
function findLocal(settings: Settings): GatewayFile | undefined {
  try {
    demandOwnFolder(settings, settings.dataFolder)
    return findGatewayFile(settings.dataFolder)
  } catch {
    return undefined
  }
}

function checkTrust(settings: Settings): Finding[] {
  try {
    demandOwnFolder(settings, settings.dataFolder)
    return []
  } catch (error) {
    const { code, message, entry } = toGatewayError(error)
    return code === 'data-untrusted' ? [problem('data folder', message, entry.hint)] : []
  }
}

/** Empty if the caller may not list secrets: a secret is then reported as a missing variable. */
async function listSecrets(request: Context['request']): Promise<string[]> {
  const page = await request('Asking for secrets', (client) => client.secrets.list()).catch(() => undefined)
  return page?.items.map(({ name }) => name) ?? []
}
