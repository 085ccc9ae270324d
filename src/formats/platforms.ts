import { isPlainObject, type PlainObject } from '../documents/values.ts'
import type { Reported } from './format.ts'
import { hasAgents, readAgents } from './platform-agents.ts'
import { readConnectors } from './platform-connectors.ts'
import { listEntries, type PlatformReading, readEntries } from './platform-lists.ts'
import { isManifest, readManifest } from './platform-manifest.ts'
import { listClaims, readEnabledTools } from './platform-tools.ts'

/** A form of configuration that several platforms use, without a program of its own. */
export type Platform = {
  readonly title: string
  /** The keys at the top of a document that this form reads; empty if the document does not have this form. */
  claims(document: PlainObject): readonly string[]
  read(document: PlainObject): PlatformReading
}

const usual = ['transport', 'type', 'command', 'args', 'env', 'cwd', 'url', 'headers']

/** `mcp-servers.json`: `{"mcpServers": {…}}` with `transport`. */
const mcpServersFile: Platform = {
  title: 'mcp-servers.json',
  claims: ({ mcpServers }) => (Array.isArray(mcpServers) || namesTransport(mcpServers) ? ['mcpServers'] : []),
  read: ({ mcpServers }) => readEntries(listEntries(mcpServers, 'mcpServers'), usual),
}

/** `sallyport.yaml`. Only servers are taken over: rules and risks decide about calls, and a text must not bring them. */
const ownFile: Platform = {
  title: 'sallyport.yaml',
  claims: ({ servers }) => (namesTransport(servers) ? ['servers'] : []),
  read(document) {
    const { servers, reported } = readEntries(listEntries(document.servers, 'servers'), usual)
    const message = 'is not imported: only servers of the global scope are'
    const others = ownSections.filter((key) => Object.hasOwn(document, key))
    return { servers, reported: [...reported, ...others.map((key): Reported => ({ key, message }))] }
  },
}

const ownSections = ['rules', 'toolsets', 'projects', 'agents', 'users', 'environment', 'egress', 'members', 'webhooks']

const platforms: readonly Platform[] = [
  mcpServersFile,
  ownFile,
  {
    title: 'enabledTools',
    claims: listClaims,
    read: readEnabledTools,
  },
  {
    title: 'mcp_connectors',
    claims: ({ mcp_connectors: listed }) => (isPlainObject(listed) || Array.isArray(listed) ? ['mcp_connectors'] : []),
    read: readConnectors,
  },
  { title: 'config.servers', claims: (document) => (isManifest(document) ? ['config'] : []), read: readManifest },
  {
    title: 'defaults.mcp and agents.mcp',
    claims: (document) => (hasAgents(document) ? ['defaults', 'agents'] : []),
    read: readAgents,
  },
]

/** The forms that a document has. A document may have several. */
export function findPlatforms(document: PlainObject): Platform[] {
  return platforms.filter((platform) => platform.claims(document).length > 0)
}

/** Programs that people install write `type` or nothing. Cline writes `transport` as a map. */
function namesTransport(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  return Object.values(value).some((fields) => isPlainObject(fields) && typeof fields.transport === 'string')
}
