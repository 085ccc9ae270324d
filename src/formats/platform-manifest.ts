import { z } from 'zod'
import { isPlainObject, type PlainObject } from '../documents/values.ts'
import type { Reported } from './format.ts'
import type { PlatformServer } from './platform-entry.ts'
import { listEntries, type PlatformReading, readEntries, withNote } from './platform-lists.ts'

const usual = ['transport', 'command', 'args', 'url', 'headers', 'env', 'tool_allowlist', 'cwd']

/** A manifest with `config.servers`: a list of servers with `alias`. */
export function readManifest(document: PlainObject): PlatformReading {
  const config = isPlainObject(document.config) ? document.config : {}
  const read = readEntries(listEntries(config.servers, 'config.servers', 'alias'), usual)
  const places = [config, document]
  const chosen = findTexts(places, ['enabled_servers', 'enabledServers'])
  const allowed = findTexts(places, ['tool_allowlist', 'toolAllowlist'])
  const byAlias = findMap(places, ['tool_allowlist', 'toolAllowlist'])
  const aliases = read.servers.map(({ key }) => key)
  const servers = read.servers.map((server) => limitTools(switchServer(server, chosen), { allowed, byAlias, aliases }))
  return { servers, reported: [...read.reported, ...reportUnknown(chosen, aliases), ...reportKeys(document, config)] }
}

export function isManifest({ config }: PlainObject): boolean {
  return isPlainObject(config) && Array.isArray(config.servers)
}

const Texts = z.array(z.string())

function findTexts(places: readonly PlainObject[], names: readonly string[]): string[] | undefined {
  const found = places.flatMap((place) => names.map((name) => Texts.safeParse(place[name])))
  return found.find(({ success }) => success)?.data
}

const TextsByName = z.record(z.string(), Texts)

function findMap(places: readonly PlainObject[], names: readonly string[]): Record<string, string[]> | undefined {
  const found = places.flatMap((place) => names.map((name) => TextsByName.safeParse(place[name])))
  return found.find(({ success }) => success)?.data
}

/** A server that `enabled_servers` does not name was off. */
function switchServer(server: PlatformServer, chosen: readonly string[] | undefined): PlatformServer {
  if (chosen === undefined || chosen.includes(server.key) || chosen.includes('*')) return server
  const message = 'is not listed in enabled_servers, so the server is saved disabled'
  return withNote({ ...server, definition: { ...server.definition, enabled: false } }, { field: 'enabled', message })
}

type Allowed = {
  readonly allowed: readonly string[] | undefined
  readonly byAlias: Readonly<Record<string, readonly string[]>> | undefined
  readonly aliases: readonly string[]
}

/** Names may begin with the alias of a server: `github.search`, `github__search`, `github/search`. */
function limitTools(server: PlatformServer, { allowed, byAlias, aliases }: Allowed): PlatformServer {
  const own = byAlias && Object.hasOwn(byAlias, server.key) ? byAlias[server.key] : undefined
  const include = own ?? (allowed && [...new Set(allowed.flatMap((name) => toOwnTool(name, server.key, aliases)))])
  if (include === undefined || include.includes('*')) return server
  const definition = { ...server.definition, tools: { ...server.definition.tools, include: [...include] } }
  const message =
    include.length === 0
      ? 'names no tool of this server, so no tool is offered'
      : 'chooses the tools that are offered. It allows no call: Sallyport has its own rules'
  return withNote({ ...server, definition }, { field: 'tool_allowlist', message })
}

const separators = ['__', '.', '/', ':']

function toOwnTool(name: string, alias: string, aliases: readonly string[]): string[] {
  const after = (server: string) => {
    const separator = separators.find((mark) => name.startsWith(server + mark))
    return separator === undefined ? undefined : name.slice(server.length + separator.length)
  }
  const own = after(alias)
  if (own !== undefined) return [own]
  return aliases.some((other) => after(other) !== undefined) ? [] : [name]
}

function reportUnknown(chosen: readonly string[] | undefined, aliases: readonly string[]): Reported[] {
  const unknown = (chosen ?? []).filter((name) => name !== '*' && !aliases.includes(name))
  return unknown.map((name) => ({ key: `enabled_servers.${name}`, message: 'names no server of this manifest' }))
}

const read = ['enabled_servers', 'enabledServers', 'tool_allowlist', 'toolAllowlist']
const aboutManifest = ['name', 'version', 'description', 'title', 'id', '$schema', 'schema', 'schema_version', 'author']
const aboutAgent = ['model', 'instructions', 'prompt', 'system_prompt', 'systemPrompt', 'temperature', 'max_tokens']

function reportKeys(document: PlainObject, config: PlainObject): Reported[] {
  const outside = Object.keys(document).filter((key) => key !== 'config' && !read.includes(key))
  const inside = Object.keys(config).filter((key) => key !== 'servers' && !read.includes(key))
  return [
    ...outside.map((key) => ({ key, message: explainKey(key) })),
    ...inside.map((key) => ({ key: `config.${key}`, message: explainKey(key) })),
  ]
}

/** What becomes of a key that does not describe a server. */
export function explainKey(key: string): string {
  if (aboutManifest.includes(key)) return 'describes the file and is not needed'
  if (aboutAgent.includes(key)) return 'belongs to the agent: keep it in the configuration of the agent'
  return 'has no equivalent here and is not taken over'
}
