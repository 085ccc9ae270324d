import type { JsonObject, JsonValue } from '../contract/json.ts'

/** Arguments that name the object of a call, the most specific first. */
const things = [
  'number',
  'title',
  'subject',
  'name',
  'path',
  'file',
  'filename',
  'key',
  'id',
  'url',
  'uri',
  'to',
  'query',
]
/** Arguments that name the container of the object. */
const places = [
  'repository',
  'repo',
  'project',
  'channel',
  'table',
  'database',
  'collection',
  'bucket',
  'folder',
  'directory',
  'workspace',
  'board',
  'team',
  'namespace',
]
const longest = 60

/** A readable title: `merge_pull_request` with its arguments becomes "Merge pull request 481 in acme/shop". */
export function toTitle(tool: string, given: JsonObject): string {
  const place = findPlace(given)
  const thing = things
    .map((key) => toShort(findLoosely(given, key)))
    .find((text) => text !== undefined && text !== place)
  const parts = [toSentence(tool), thing, place === undefined ? undefined : `in ${place}`]
  return parts.filter((part) => part !== undefined).join(' ')
}

function findPlace(given: JsonObject): string | undefined {
  const owner = toShort(findLoosely(given, 'owner'))
  const repo = toShort(findLoosely(given, 'repo') ?? findLoosely(given, 'repository'))
  if (owner !== undefined && repo !== undefined && !repo.includes('/')) return `${owner}/${repo}`
  return places.map((key) => toShort(findLoosely(given, key))).find((text) => text !== undefined)
}

/** Compares the last word of an argument's name, so that `number` also finds `pull_number` and `issueNumber`. */
function findLoosely(given: JsonObject, wanted: string): JsonValue | undefined {
  if (Object.hasOwn(given, wanted)) return given[wanted]
  return Object.entries(given).find(([key]) => toWords(key).at(-1) === wanted)?.[1]
}

function toShort(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return undefined
  return value !== '' && value.length <= longest && !/[\r\n]/.test(value) ? value : undefined
}

function toSentence(tool: string): string {
  const words = toWords(tool).join(' ')
  return words === '' ? tool : `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}

function toWords(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
}
