import type { Audit } from '../audit/audit.ts'
import type { Calls } from '../calls/calls.ts'
import { type ConfigStore, formatProblem } from '../config/config.ts'
import type { Status } from '../contract/status.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Repositories } from '../repositories/repositories.ts'
import type { ServerFiles } from '../server-files/server-files.ts'
import type { ServerService } from '../servers/servers.ts'
import type { Storage } from '../storage/storage.ts'

type StatusParts = {
  readonly config: ConfigStore
  readonly serverFiles: Pick<ServerFiles, 'notices'>
  readonly storage: Pick<Storage, 'findProblem' | 'instance' | 'kind'>
  readonly calls: Calls
  readonly servers: Pick<ServerService, 'list'>
  readonly repositories: Pick<Repositories, 'notices'>
  readonly version: string
  readonly audit: Pick<Audit, 'anchors' | 'retention'>
  readonly clock: Clock
}

/** `url`: the gateway's address, known to the HTTP surface. */
export type ReadStatus = (url?: string) => Status

/** The gateway is unhealthy if an enabled server is not connected or the storage has a problem. */
export function createStatus(parts: StatusParts): ReadStatus {
  const { config, storage, calls, audit, clock, version } = parts
  const startedAt = clock.now()
  const began = clock.monotonic()
  const startedWith = JSON.stringify(config.current().listen)
  return (url = ''): Status => {
    const servers = parts.servers.list()
    const retention = audit.retention()
    const problem = storage.findProblem()
    const serversHealthy = servers.every(({ enabled, state }) => !enabled || state === 'connected')
    return {
      healthy: serversHealthy && problem === undefined,
      version,
      instance: storage.instance,
      url,
      startedAt: toIso(startedAt),
      uptimeMs: Math.round(clock.monotonic() - began),
      storage: {
        kind: storage.kind,
        healthy: problem === undefined,
        ...(problem && { problem: { code: problem.code, message: problem.message } }),
      },
      config: {
        file: config.file,
        problems: config.rejected().map(formatProblem),
        notices: [...config.notices(), ...parts.serverFiles.notices()],
        restart: JSON.stringify(config.current().listen) === startedWith ? [] : ['listen'],
      },
      servers: servers.map(({ name, title, scope, state, tools, error }) => ({
        name,
        ...(title !== undefined && { title }),
        scope,
        state,
        tools,
        ...(error && { error: error.message }),
        ...(error?.output && { output: error.output }),
      })),
      repositories: [...parts.repositories.notices()],
      calls: { running: calls.running() },
      anchors: audit.anchors(),
      ...(retention && { retention }),
    }
  }
}
