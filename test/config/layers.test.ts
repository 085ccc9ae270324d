import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { connections, effective, type SessionSettings, toSettings } from '../../src/config/config.ts'
import { Config, Project } from '../../src/contract/config.ts'
import { Rule } from '../../src/contract/rule.ts'
import { globalScope, type Scope, toScopeKey } from '../../src/contract/scope.ts'
import { type ServerDefinition, ServerPatch, type SharedLimits } from '../../src/contract/server.ts'
import { matchesAny } from '../../src/lib/glob.ts'
import { configOf } from './support.ts'

type Fields = Readonly<Record<string, unknown>>
type Layer = { readonly scope: Scope; readonly statement: Fields }

const scopes: readonly Scope[] = [
  globalScope,
  { kind: 'project', name: 'shop' },
  { kind: 'agent', name: 'reviewer' },
  { kind: 'user', name: 'anna' },
]

const headers = fc.dictionary(
  fc.constantFrom('A', 'a', 'B', 'X-Token', 'x-token'),
  fc.constantFrom('1', '${T}', 'Bearer ${T}'),
  { maxKeys: 2 },
)
const patch = fc.record(
  {
    headers: headers.filter(isDistinct),
    description: fc.constantFrom('one', 'two'),
    enabled: fc.boolean(),
    timeout: fc.record({ call: fc.integer({ min: 10, max: 99 }) }),
  },
  { requiredKeys: [] },
)
const address = fc.record({ transport: fc.constant('http'), url: fc.constantFrom('https://a/${P}', 'https://b/${P}') })
const whole = fc.tuple(address, patch).map(([place, more]) => ({ ...place, ...more }))
const stack = fc.tuple(whole, fc.oneof(patch, whole), fc.oneof(patch, whole), fc.oneof(patch, whole))

function isDistinct(names: object): boolean {
  const small = Object.keys(names).map((name) => name.toLowerCase())
  return new Set(small).size === small.length
}

function toConfig([global, project, agent, user]: readonly Fields[]): Config {
  return Config.parse({
    servers: { s: global },
    projects: { shop: { servers: { s: project } } },
    agents: { reviewer: { project: 'shop', servers: { s: agent } } },
    users: { anna: { servers: { s: user } } },
  })
}

/** What a reader of the file would say: the last scope that stated it, since the address last changed. */
function expectedOrigins(layers: readonly Layer[]): Map<string, { scope: string; value: unknown }> {
  const found = new Map<string, { scope: string; value: unknown }>()
  for (const { scope, statement } of layers) {
    const { url } = statement
    if (url !== undefined && url !== found.get('url')?.value) found.clear()
    for (const [key, value] of flatten(statement)) found.set(key, { scope: toScopeKey(scope), value })
  }
  return found
}

function flatten(statement: Fields): [string, unknown][] {
  return Object.entries(statement).flatMap(([key, value]): [string, unknown][] => {
    if (key !== 'headers' && key !== 'timeout') return [[key, value]]
    return Object.entries(Object(value)).map(([name, inner]) => [`${key}.${name.toLowerCase()}`, inner])
  })
}

function check(order: readonly Scope[], statements: readonly Fields[]): void {
  const layers = scopes.map((scope, index) => ({ scope, statement: statements[index] ?? {} }))
  const settings = toSettings(toConfig(statements), { agents: [], sessions: [], administrators: ['anna'] })
  const server = effective(settings, order).servers.get('s')
  if (server === undefined) throw new Error('no server')
  const origins = new Map(Object.entries(server.origins).map(([key, scope]) => [key.toLowerCase(), scope]))
  const values = new Map(flatten(server.definition))
  for (const [key, { scope, value }] of expectedOrigins(layers)) {
    expect([key, origins.get(key), values.get(key)]).toEqual([key, scope, value])
  }
  const stated = [...values.keys()].filter((key) => key.startsWith('headers.'))
  expect(stated.sort()).toEqual([...expectedOrigins(layers).keys()].filter((key) => key.startsWith('headers.')).sort())
}

describe('where a value came from', () => {
  it('is the last scope that stated it, and nothing is inherited across a change of address', () => {
    fc.assert(
      fc.property(stack, (statements) => check(scopes, statements)),
      { numRuns: 200 },
    )
  })

  it('would be found out if the scopes were applied in another order', () => {
    const reversed = [globalScope, ...scopes.slice(1).reverse()]
    const statements = [{ transport: 'http', url: 'https://a' }, { headers: { A: '1' } }, {}, { headers: { A: '2' } }]
    check(scopes, statements)
    expect(() => check(reversed, statements)).toThrow()
  })

  it('decides over the link: the same template of another scope is another link', () => {
    const config = configOf(`
servers: { s: { transport: http, url: "https://a", headers: { A: "\${T}", B: plain } } }
users: { anna: { servers: { s: { headers: { A: "\${T}" } } } }, ben: { servers: { s: { headers: { B: plain } } } } }
`)
    const of = (name: string) => effective(config, [globalScope, { kind: 'user', name }]).servers.get('s')
    expect(of('anna')).toMatchObject({
      connection: 's@user:anna',
      origins: { 'headers.A': 'user:anna', url: 'global' },
    })
    expect(of('ben')).toMatchObject({ connection: 's', origins: { 'headers.A': 'global', 'headers.B': 'user:ben' } })
  })

  it('is cut when only the Host header leads elsewhere', () => {
    const config = configOf(`
servers: { s: { transport: http, url: "https://a", headers: { A: "\${T}" } } }
users: { anna: { servers: { s: { transport: http, url: "https://a", headers: { host: other.example } } } } }
`)
    const server = effective(config, [globalScope, { kind: 'user', name: 'anna' }]).servers.get('s')
    expect(server?.definition).toMatchObject({ headers: { host: 'other.example' } })
    expect(Object.keys(server?.origins ?? {})).not.toContain('headers.A')
  })
})

const base = configOf(`
servers:
  files: { transport: stdio, command: npx }
  github: { transport: http, url: "https://github.example", headers: { A: "1" } }
projects: { shop: { servers: { github: { headers: { B: shop } } } } }
agents: { reviewer: { servers: { github: { headers: { B: reviewer } } } } }
users: { anna: { servers: { own: { transport: http, url: "https://own.example" }, github: { headers: { C: anna } } } } }
`)

function session(more: Partial<SessionSettings> = {}): SessionSettings {
  return { name: 's1', owner: 'anna', servers: {}, rules: [], ...more }
}

function idsOf(...sessions: SessionSettings[]): string[] {
  return connections(toSettings(base, { agents: [], sessions })).map(({ id }) => id)
}

describe('connections of users and sessions', () => {
  it('are made for a user’s own entries, on top of what each of the user’s agents has', () => {
    const roster = { agents: [{ name: 'reviewer', owner: 'anna' }], sessions: [] }
    const specs = new Map(connections(toSettings(base, roster)).map((spec) => [spec.id, spec]))
    expect(specs.get('own@user:anna')).toMatchObject({ scope: 'user:anna', trusted: false })
    expect(specs.get('github@user:anna')).toMatchObject({
      scope: 'user:anna',
      trusted: true,
      definition: { headers: { A: '1', C: 'anna' } },
    })
    expect(specs.get('github@agent:reviewer@user:anna')?.definition).toMatchObject({
      headers: { A: '1', B: 'reviewer', C: 'anna' },
    })
    expect(connections(base).map(({ id }) => id)).not.toContain('github@agent:reviewer@user:anna')
  })

  it('come and go with a session', () => {
    const notes = ServerPatch.parse({ transport: 'http', url: 'https://notes.example' })
    expect(idsOf(session({ servers: { notes } }))).toContain('notes@session:s1')
    expect(idsOf()).not.toContain('notes@session:s1')
    const github = ServerPatch.parse({ headers: { D: 'session' } })
    expect(idsOf(session({ project: 'shop', servers: { github } }))).toContain(
      'github@project:shop@user:anna@session:s1',
    )
  })

  it('have one definition for each id, whoever asks', () => {
    const github = ServerPatch.parse({ headers: { D: 'session' } })
    const settings = toSettings(base, {
      agents: [{ name: 'reviewer', owner: 'anna' }],
      sessions: [session({ servers: { github } }), session({ name: 's2', project: 'shop', servers: { github } })],
    })
    const links = new Map<string, string>()
    for (const { id, definition } of connections(settings)) links.set(id, JSON.stringify(definition))
    for (const name of ['s1', 's2']) {
      const chain: Scope[] = [
        globalScope,
        ...(name === 's2' ? [{ kind: 'project' as const, name: 'shop' }] : []),
        { kind: 'user', name: 'anna' },
        { kind: 'session', name },
      ]
      const server = effective(settings, chain).servers.get('github')
      expect(links.get(server?.connection ?? '')).toBe(JSON.stringify(server?.definition))
    }
  })

  it('are trusted where user and session are an administrator’s, or nobody’s', () => {
    const notes = ServerPatch.parse({ transport: 'http', url: 'https://notes.example' })
    const trusted = (owner: string | undefined) => {
      const sessions = [{ name: 's1', owner, servers: { notes }, rules: [] }]
      const settings = toSettings(base, { agents: [], sessions, administrators: ['root'] })
      return connections(settings).find(({ id }) => id === 'notes@session:s1')?.trusted
    }
    expect([trusted('anna'), trusted('root'), trusted(undefined)]).toEqual([false, true, true])
    const promoted = connections(toSettings(base, { agents: [], sessions: [], administrators: ['anna'] }))
    expect(promoted.find(({ id }) => id === 'own@user:anna')?.trusted).toBe(true)
  })
})

it('marks rules that others than administrators write: they loosen nothing', () => {
  const rules = [Rule.parse({ action: 'allow' })]
  const owned = {
    ...base,
    projects: { shop: Project.parse({ owners: ['olga'], rules }), plain: Project.parse({ rules }) },
  }
  const settings = toSettings(owned, { agents: [], sessions: [session({ rules })] })
  const marked = (scope: Scope) => effective(settings, [scope]).rules[0]?.onlyTightens
  expect(marked({ kind: 'session', name: 's1' })).toBe(true)
  expect(marked({ kind: 'project', name: 'shop' })).toBe(true)
  expect(marked({ kind: 'project', name: 'plain' })).toBeUndefined()
})

describe('an entry of a user', () => {
  it('that no longer fits counts for nothing, and stands in nobody’s way', () => {
    const config = configOf(`
servers: { files: { transport: stdio, command: npx } }
users: { anna: { servers: { gone: { headers: { A: "1" } }, files: { headers: { A: "1" } } } } }
`)
    const { servers } = effective(config, [globalScope, { kind: 'user', name: 'anna' }])
    expect([...servers.keys()]).toEqual(['files'])
    expect(servers.get('files')).toMatchObject({ scope: 'global', connection: 'files' })
  })

  it('is not trusted with hints, and an override of an inherited server leaves that as it is', () => {
    const chain: Scope[] = [globalScope, { kind: 'user', name: 'anna' }]
    const { servers } = effective(base, chain)
    expect(servers.get('own')?.definition.trust).toBe('none')
    expect(servers.get('github')?.definition.trust).toBe('annotations')
  })
})

describe('a project', () => {
  const text = (owners: string) => `
projects: { shop: { owners: ${owners}, servers: { s: { transport: http, url: "https://a" } } } }
`
  const specOf = (owners: string) => connections(configOf(text(owners)))[0]

  it('without owners is the administrators’, with owners it is theirs', () => {
    expect(specOf('[]')).toMatchObject({ trusted: true, definition: { trust: 'annotations' } })
    expect(specOf('[anna]')).toMatchObject({ trusted: false, definition: { trust: 'none' } })
    expect(specOf('[]')?.fingerprint).not.toBe(specOf('[anna]')?.fingerprint)
  })
})

describe('what a member states of an inherited server', () => {
  const risks = fc.constantFrom(undefined, 'read' as const, 'write' as const, 'danger' as const)
  const trust = fc.constantFrom(undefined, 'annotations' as const, 'none' as const)
  const pinning = fc.constantFrom(undefined, 'baseline' as const, 'strict' as const)
  const globs = fc.option(fc.subarray(['*', 'erase', 'e*', 'peek', '?eek', 'p*']), { nil: undefined })
  const limits = fc.option(
    fc.record(
      { callsPerMinute: fc.integer({ min: 1, max: 9 }), concurrent: fc.integer({ min: 1, max: 9 }) },
      { requiredKeys: [] },
    ),
    { nil: undefined },
  )
  const name = fc.constantFrom(undefined, 'harmless', 'other')
  const changes = { risk: risks, name, description: name, limits }
  const statement = fc
    .record({
      fields: fc.record({
        trust,
        pinning,
        defaultRisk: risks,
        limits,
        enabled: fc.constantFrom(undefined, true, false),
      }),
      tools: fc.record({ include: globs, exclude: globs, override: fc.record({ erase: fc.record(changes) }) }),
    })
    .map(({ fields, tools }) => ({ ...fields, tools }))

  /** What holds for Anna, where everybody has the first and she wrote the second, at whatever time. */
  function mergeFor(everybody: object, annas: object, administrators: string[] = []) {
    const config = Config.parse({
      servers: { s: { transport: 'http', url: 'https://a', ...everybody } },
      users: { anna: { servers: { s: { headers: { a: '1' }, ...annas } } } },
    })
    const settings = toSettings(config, { agents: [], sessions: [], administrators })
    const along = (names: readonly Scope[]) => effective(settings, names).servers.get('s')?.definition
    return [along([globalScope]), along([globalScope, { kind: 'user', name: 'anna' }])] as const
  }

  const rank = { read: 0, write: 1, danger: 2 }

  it('offers nothing more, under no other name, no more often and not where it is switched off', () => {
    const offered = ({ enabled, tools: { include, exclude } }: ServerDefinition) =>
      ['peek', 'erase'].filter((tool) => enabled && matchesAny(include, tool) && !matchesAny(exclude, tool))
    const most = (stated: number | undefined) => stated ?? Number.POSITIVE_INFINITY
    const isAtMost = (after: SharedLimits = {}, before: SharedLimits = {}) =>
      most(after.callsPerMinute) <= most(before.callsPerMinute) && most(after.concurrent) <= most(before.concurrent)
    fc.assert(
      fc.property(statement, statement, (everybody, annas) => {
        const [before, after] = mergeFor(everybody, annas)
        if (!before || !after) throw new Error('no server')
        expect(offered(before)).toEqual(expect.arrayContaining(offered(after)))
        const [ofTool, ofAnnas] = [before.tools.override.erase, after.tools.override.erase]
        expect([ofAnnas?.name, ofAnnas?.description]).toEqual([ofTool?.name, ofTool?.description])
        expect(isAtMost(after.limits, before.limits) && isAtMost(ofAnnas?.limits, ofTool?.limits)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it('never changes its title, and an administrator’s own entry does', () => {
    const titles = (admins: string[]) =>
      mergeFor({ title: 'GitHub' }, { title: 'GitHub (official)' }, admins).map((each) => each?.title)
    expect(titles([])).toEqual(['GitHub', 'GitHub'])
    expect(titles(['anna'])).toEqual(['GitHub', 'GitHub (official)'])
    expect(mergeFor({}, { title: 'GitHub' })[1]?.title).toBeUndefined()
  })

  it('never lowers risk, trust or pinning, also where the inherited entry became stricter later', () => {
    fc.assert(
      fc.property(statement, statement, (everybody, annas) => {
        const [before, after] = mergeFor(everybody, annas)
        const lowered = (a: keyof typeof rank | undefined, b: keyof typeof rank | undefined) =>
          a !== b && b !== 'danger' && !(a !== undefined && b !== undefined && rank[b] > rank[a])
        expect(before?.trust === 'none' && after?.trust === 'annotations').toBe(false)
        expect(before?.pinning === 'strict' && after?.pinning !== 'strict').toBe(false)
        expect(lowered(before?.defaultRisk, after?.defaultRisk)).toBe(false)
        expect(lowered(before?.tools.override.erase?.risk, after?.tools.override.erase?.risk)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  it('is left as it is where an administrator wrote it, except for pinning', () => {
    const everybody = { pinning: 'strict', defaultRisk: 'danger', trust: 'none' }
    const [, after] = mergeFor(everybody, { pinning: 'baseline', defaultRisk: 'read', trust: 'annotations' }, ['anna'])
    expect(after).toMatchObject({ pinning: 'strict', defaultRisk: 'read', trust: 'annotations' })
    const narrow = { enabled: false, tools: { include: ['peek'], exclude: ['erase'] } }
    const [, wider] = mergeFor(narrow, { enabled: true, tools: { include: ['*'], exclude: [] } }, ['anna'])
    expect(wider).toMatchObject({ enabled: true, tools: { include: ['*'], exclude: [] } })
  })

  it('may narrow the tools by their own names within the inherited globs', () => {
    const [, after] = mergeFor({ tools: { include: ['p*'] } }, { tools: { include: ['peek', 'erase', 'e*'] } })
    expect(after?.tools.include).toEqual(['peek'])
  })
})
