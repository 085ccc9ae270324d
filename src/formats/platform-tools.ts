import { isPlainObject, type PlainObject } from '../documents/values.ts'
import type { Reported } from './format.ts'
import { listEntries, nothing, type PlatformReading, readEntries } from './platform-lists.ts'

const usual = ['type', 'command', 'url', 'env', 'headers', 'cwd', 'allowedTools', 'args']

/** `enabledTools.mcp_servers`, or `mcp_servers` alone, with `type: local` and a command as a list. */
export function readEnabledTools(document: PlainObject): PlatformReading {
  const tools = isPlainObject(document.enabledTools) ? document.enabledTools : {}
  const { mcp_servers: alone } = document
  const isAlone = hasTypedServers(alone)
  const readings = [
    readMcpServers(tools, 'enabledTools.'),
    ...(isAlone ? [readMcpServers({ mcp_servers: alone }, '')] : []),
  ]
  return {
    servers: readings.flatMap(({ servers }) => servers),
    reported: [...readings.flatMap(({ reported }) => reported), ...reportOthers(tools)],
  }
}

/** The keys of a document that have this shape. */
export function listClaims({ enabledTools, mcp_servers: alone }: PlainObject): string[] {
  return [...(isPlainObject(enabledTools) ? ['enabledTools'] : []), ...(hasTypedServers(alone) ? ['mcp_servers'] : [])]
}

/** Codex has a map of the same name. Its entries have no `type`, and their command is a text. */
function hasTypedServers(value: unknown): boolean {
  if (!isPlainObject(value) && !Array.isArray(value)) return false
  const entries: unknown[] = Object.values(value)
  return entries.some((fields) => {
    return isPlainObject(fields) && (typeof fields.type === 'string' || Array.isArray(fields.command))
  })
}

function readMcpServers(holder: PlainObject, prefix: string): PlatformReading {
  const key = homes.find((name) => Object.hasOwn(holder, name))
  return key === undefined ? nothing : readEntries(listEntries(holder[key], `${prefix}${key}`), usual)
}

const homes: readonly string[] = ['mcp_servers', 'mcpServers']

const replacements: Readonly<Record<string, string>> = {
  slack_notify:
    'is replaced by a server for Slack (messages that the agent writes), or by a webhook (notices of the gateway): docs/guide/webhooks.md',
  email_user:
    'is replaced by a server that sends mail (messages that the agent writes), or by a webhook (notices of the gateway): docs/guide/webhooks.md',
  create_linear_issue:
    'is replaced by the server of Linear: sallyport servers add linear --url https://mcp.linear.app/mcp',
  create_session: 'is replaced by a session of the gateway: sallyport sessions create',
}

function reportOthers(tools: PlainObject): Reported[] {
  return Object.keys(tools)
    .filter((name) => !homes.includes(name))
    .map((name) => {
      const known = Object.hasOwn(replacements, name) ? replacements[name] : undefined
      const message = known ?? 'is a tool of that platform: add a server that offers such a tool'
      return { key: `enabledTools.${name}`, message }
    })
}
