import type { JsonObject, JsonValue } from '../contract/json.ts'

/** What names the thing that a call is about, the most telling first. */
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
/** What names the place where it is. */
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

/** `merge_pull_request` with its arguments as a colleague would say it: "Merge pull request 481 in acme/shop". */
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

/** `pull_number` and `issueNumber` are numbers too: the last word of a name says what it is. */
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
