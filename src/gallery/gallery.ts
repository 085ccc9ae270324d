import type { ConfigStore } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { GalleryDetail, GalleryPlan, GallerySummary } from '../contract/gallery.ts'
import type { Principal } from '../contract/principal.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { ServerDetail } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import { nearest } from '../lib/text.ts'
import { type AddingParts, createAdding, type Wanted } from './adding.ts'
import { createRegistry, type RegistryPage, type RegistryParts, type RegistrySearch } from './registry.ts'
import { search } from './search.ts'

export type GalleryParts = Omit<AddingParts, 'config'> & {
  readonly config: AddingParts['config'] & Pick<ConfigStore, 'current'>
  readonly getDocument: RegistryParts['getDocument']
  readonly clock: Clock
}

export type GalleryChoice = {
  readonly id: string
  /** Name of the server. Default: the id. */
  readonly name?: string | undefined
  /** Default: the first way to connect. */
  readonly connection?: string | undefined
  readonly scope?: ScopeKey | undefined
  /** Values of variables, also of secrets. */
  readonly values?: Readonly<Record<string, string>> | undefined
}

/** Known MCP servers, and what is needed to add them. */
export type Gallery = {
  list(by: Principal, wanted?: { readonly search?: string | undefined }): Promise<GallerySummary[]>
  get(by: Principal, id: string): Promise<GalleryDetail>
  /** What would be added, and which values are missing. Changes nothing. */
  plan(by: Principal, choice: GalleryChoice): Promise<GalleryPlan>
  /** Stores the given secrets and adds the server. Throws `values-missing`. */
  add(by: Principal, choice: GalleryChoice): Promise<ServerDetail>
  /** Servers of the registry in `registry.url`, for administrators. */
  readonly registry: {
    search(by: Principal, wanted: RegistrySearch): Promise<RegistryPage>
    plan(by: Principal, choice: RegistryChoice): Promise<GalleryPlan>
    add(by: Principal, choice: RegistryChoice): Promise<ServerDetail>
  }
}

export type RegistryChoice = Omit<GalleryChoice, 'id' | 'name'> & {
  readonly server: string
  readonly version: string
  readonly name: string
}

export function createGallery({ config, servers, secrets, getDocument, clock }: GalleryParts): Gallery {
  const adding = createAdding({ config, servers, secrets })
  const registry = createRegistry({ url: () => config.current().registry.url, getDocument, clock })
  return {
    list,
    get,
    plan: async (by, choice) => adding.plan(by, await toWanted(by, choice)),
    add: async (by, choice) => adding.add(by, await toWanted(by, choice)),
    registry: {
      async search(by, wanted) {
        demandAdministrator(by)
        return registry.search(wanted)
      },
      plan: async (by, choice) => adding.plan(by, await toUnreviewed(by, choice)),
      add: async (by, choice) => adding.add(by, await toUnreviewed(by, choice)),
    },
  }

  /** Nobody has reviewed the server: it uses no existing secrets, and its hints do not lower risks. */
  async function toUnreviewed(by: Principal, { server, version, ...choice }: RegistryChoice): Promise<Wanted> {
    demandAdministrator(by)
    const found = await registry.get(server, version)
    if (found.status === 'deleted')
      throw new GatewayError('request-invalid', `${server} ${version} was deleted from the registry`)
    if (found.connections.length === 0) {
      const reasons = found.unsupported.join('; ') || 'the registry names none'
      throw new GatewayError('request-invalid', `${server} ${version} has no usable connection: ${reasons}`)
    }
    return { ...choice, entry: { ...found, trust: 'none' }, usesExisting: false }
  }

  async function toWanted(by: Principal, { id, name = id, ...choice }: GalleryChoice): Promise<Wanted> {
    return { ...choice, name, entry: await get(by, id), usesExisting: true }
  }

  /** Entries of the operator replace built-in entries of the same id. */
  async function load(): Promise<ReadonlyMap<string, GalleryDetail>> {
    // Loaded at first use: most starts of the program do not need the data.
    const { builtIn } = await import('./data.ts')
    const all = new Map<string, GalleryDetail>()
    for (const [id, entry] of builtIn) all.set(id, { ...entry, own: false })
    for (const [id, entry] of Object.entries(config.current().gallery)) all.set(id, { id, ...entry, own: true })
    return all
  }

  async function list(_by: Principal, wanted: { search?: string | undefined } = {}): Promise<GallerySummary[]> {
    const entries = await load()
    return search([...entries.values()], wanted.search ?? '').map(toSummary)
  }

  async function get(_by: Principal, id: string): Promise<GalleryDetail> {
    const entries = await load()
    const entry = entries.get(id)
    if (entry !== undefined) return entry
    const meant = nearest(id, [...entries.keys()])
    const suggestion = meant === undefined ? '' : `. Did you mean ${meant}?`
    throw new GatewayError('not-found', `The gallery has no entry ${id}${suggestion}`, {
      ...(meant !== undefined && { suggestion: meant }),
    })
  }
}

function demandAdministrator({ kind, role }: Principal): void {
  if (kind === 'user' && role === 'administrator') return
  throw new GatewayError('forbidden', 'Only administrators can use the registry')
}

function toSummary(entry: GalleryDetail): GallerySummary {
  const { id, title, purpose, category, vendor, official, own: isOwn, connections } = entry
  return {
    ...{ id, title, purpose, category, official, own: isOwn },
    ...(vendor !== undefined && { vendor }),
    connections: connections.map((connection) => ({
      id: connection.id,
      title: connection.title,
      transport: connection.transport,
    })),
  }
}
