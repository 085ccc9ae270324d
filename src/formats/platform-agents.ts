import { isPlainObject, own, type PlainObject } from '../documents/values.ts'
import type { Reported } from './format.ts'
import { listEntries, type Named, type PlatformReading, readEntries, takeName, withNote } from './platform-lists.ts'
import { explainKey } from './platform-manifest.ts'

const usual = ['transport', 'type', 'command', 'args', 'url', 'headers', 'env', 'cwd', 'allowed_tools']

/** `[[defaults.mcp]]`, `[[agents]]` and `[[agents.mcp]]`: agents add to the defaults, and override them by name. */
export function readAgents({ defaults, agents }: PlainObject): PlatformReading {
  const shared = listEntries(isPlainObject(defaults) ? defaults.mcp : undefined, 'defaults.mcp')
  const base = readEntries(shared, usual)
  const listed = listAgents(agents)
  const readings = listed.named.map((agent) => readAgent(agent, shared.named))
  return {
    servers: [...base.servers, ...readings.flatMap(({ servers }) => servers)],
    reported: [
      ...base.reported,
      ...reportOthers(isPlainObject(defaults) ? defaults : {}, 'defaults'),
      ...listed.reported,
      ...readings.flatMap(({ reported }) => reported),
    ],
  }
}

export function hasAgents({ defaults, agents }: PlainObject): boolean {
  if (isPlainObject(defaults) && defaults.mcp !== undefined) return true
  const entries: unknown[] = isPlainObject(agents) || Array.isArray(agents) ? Object.values(agents) : []
  return entries.some((entry) => isPlainObject(entry) && (isPlainObject(entry.mcp) || Array.isArray(entry.mcp)))
}

function listAgents(agents: unknown): { named: Named[]; reported: Reported[] } {
  if (isPlainObject(agents)) return listEntries(agents, 'agents')
  const named: Named[] = []
  const reported: Reported[] = []
  for (const [index, fields] of (Array.isArray(agents) ? agents : []).entries()) {
    const found = isPlainObject(fields) ? takeName(fields, 'name') : undefined
    if (found === undefined) reported.push({ key: `agents.${index}`, message: 'has no name, so it is not read' })
    else named.push(found)
  }
  return { named, reported }
}

function readAgent({ key: agent, fields }: Named, shared: readonly Named[]): PlatformReading {
  const { named, reported } = listEntries(fields.mcp, `agents.${agent}.mcp`)
  const completed = named.map((entry) => completeEntry(entry, shared))
  const reading = readEntries({ named: completed.map(({ entry }) => entry), reported }, usual)
  const inherited = new Set(completed.filter(({ isPartial }) => isPartial).map(({ entry }) => entry.key))
  const message = 'has no command and no address: the other fields come from defaults.mcp'
  return {
    servers: reading.servers.map((server) => ({
      ...(inherited.has(server.key) ? withNote(server, { field: 'name', message }) : server),
      agent,
    })),
    reported: [...reading.reported, ...reportOthers(fields, `agents.${agent}`)],
  }
}

const identifying = ['command', 'cmd', 'url', 'endpoint', 'uri']

/** An entry without command and address changes single fields of the default with the same name. */
function completeEntry(entry: Named, shared: readonly Named[]): { entry: Named; isPartial: boolean } {
  const base = shared.find(({ key }) => key === entry.key)
  const isWhole = identifying.some((field) => own(entry.fields, field) !== undefined)
  if (base === undefined || isWhole) return { entry, isPartial: false }
  return { entry: { ...entry, fields: { ...base.fields, ...entry.fields } }, isPartial: true }
}

function reportOthers(fields: PlainObject, path: string): Reported[] {
  return Object.keys(fields)
    .filter((key) => key !== 'mcp')
    .map((key) => ({ key: `${path}.${key}`, message: explainKey(key) }))
}
