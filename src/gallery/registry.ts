import { z } from 'zod'
import { GatewayError } from '../contract/errors.ts'
import type { RegistryServer } from '../contract/registry.ts'
import type { Clock } from '../lib/clock.ts'
import { toRegistryServer } from './registry-entry.ts'

export type RegistrySearch = {
  readonly search?: string | undefined
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export type RegistryPage = {
  readonly items: RegistryServer[]
  readonly next: string | null
  /** Number of items with a wrong shape. */
  readonly skipped: number
}

export type Registry = {
  search(wanted: RegistrySearch): Promise<RegistryPage>
  /** Throws `not-found`. */
  get(name: string, version: string): Promise<RegistryServer>
}

export type RegistryParts = {
  /** The setting `registry.url`. */
  url(): string
  /** Gets a JSON document of limited size under the egress rules. */
  getDocument(url: string, signal: AbortSignal): Promise<unknown>
  readonly clock: Pick<Clock, 'monotonic'>
}

const freshMs = 10 * 60_000
const mostCached = 100
const timeoutMs = 15_000

const Answer = z.object({
  servers: z.array(z.unknown()).max(200),
  metadata: z
    .object({ nextCursor: z.string().max(1024).nullish(), next_cursor: z.string().max(1024).nullish() })
    .optional(),
})

/** Reads servers from a registry when somebody asks for them, and keeps answers for some minutes. */
export function createRegistry({ url, getDocument, clock }: RegistryParts): Registry {
  const cache = new Map<string, { readonly until: number; readonly answer: unknown }>()
  return { search, get }

  async function search({ search: words, cursor, limit = 50 }: RegistrySearch): Promise<RegistryPage> {
    const query = new URLSearchParams({ version: 'latest', limit: String(limit) })
    if (words) query.set('search', words)
    if (cursor) query.set('cursor', cursor)
    const parsed = Answer.safeParse(await read(`/v0.1/servers?${query}`))
    if (!parsed.success) throw new GatewayError('server-broken', 'The answer of the registry has a wrong shape')
    const { servers, metadata } = parsed.data
    const items = servers.map(toRegistryServer).filter((item) => item !== undefined)
    const next = metadata?.nextCursor ?? metadata?.next_cursor
    return { items, next: next || null, skipped: servers.length - items.length }
  }

  async function get(name: string, version: string): Promise<RegistryServer> {
    const path = `/v0.1/servers/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`
    const found = toRegistryServer(
      await read(path).catch((error: unknown) => Promise.reject(toNotFound(error, name, version))),
    )
    if (found === undefined)
      throw new GatewayError('server-broken', `The answer of the registry about ${name} has a wrong shape`)
    // The request names an exact server: the answer must not be about another one.
    if (found.id === name && found.version === version) return found
    throw new GatewayError('server-broken', `The registry answered about another server than ${name} ${version}`)
  }

  async function read(path: string): Promise<unknown> {
    const address = `${url().replace(/\/+$/, '')}${path}`
    const now = clock.monotonic()
    for (const [key, { until }] of cache) if (until <= now) cache.delete(key)
    const known = cache.get(address)
    if (known !== undefined) return known.answer
    const answer = await getDocument(address, AbortSignal.timeout(timeoutMs))
    const [oldest] = cache.keys()
    if (cache.size >= mostCached && oldest !== undefined) cache.delete(oldest)
    cache.set(address, { until: now + freshMs, answer })
    return answer
  }
}

function toNotFound(error: unknown, name: string, version: string): unknown {
  const isMissing = error instanceof GatewayError && error.details.status === 404
  return isMissing
    ? new GatewayError('not-found', `The registry has no server ${name} with the version ${version}`)
    : error
}
