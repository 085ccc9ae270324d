import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { connections, effective, scopesOf, toSettings } from '../../src/config/config.ts'
import { Config } from '../../src/contract/config.ts'
import type { Principal } from '../../src/contract/principal.ts'
import { globalScope, type Scope, type ScopeKey, toScope, toScopeKey } from '../../src/contract/scope.ts'
import type { ServerPatch } from '../../src/contract/server.ts'
import { configOf } from './support.ts'

const project: Scope = { kind: 'project', name: 'shop' }
const agent: Scope = { kind: 'agent', name: 'reviewer' }
const chain = [globalScope, project, agent]
const anna: Scope = { kind: 'user', name: 'anna' }

const base = `
servers:
  files:
    transport: stdio
    command: npx
    args: [a]
    env: { LEVEL: warn, TOKEN: "\${TOKEN}" }
    timeout: { call: 5000 }
    tools: { exclude: ["delete_*"], override: { merge: { risk: danger } } }
  github:
    transport: http
    url: https://one.example
    headers: { Authorization: "Bearer \${TOKEN}", X-Trace: "1" }
    description: Issues
rules: [{ tools: "*", action: ask }]
`

function withAgent(servers: string, projectServers = '{}'): Config {
  return configOf(`${base}
projects: { shop: { servers: ${projectServers} } }
agents: { reviewer: { project: shop, servers: ${servers} } }
`)
}

function serverOf(config: Config, name: string, scopes: readonly Scope[] = chain) {
  const server = effective(config, scopes).servers.get(name)
  if (server === undefined) throw new Error(`no server ${name}`)
  return server
}

describe('the chain of scopes', () => {
  it('goes from global over the project to the agent', () => {
    const config = withAgent('{}')
    expect(scopesOf(config, { kind: 'agent', name: 'reviewer' })).toEqual(chain)
    expect(scopesOf(config, { kind: 'agent', name: 'stranger' })).toEqual([
      globalScope,
      { kind: 'agent', name: 'stranger' },
    ])
    expect(scopesOf(config, { kind: 'agent', name: 'constructor' })).toHaveLength(2)
  })

  it('ends with the owner of the agent, who may refine what the agent has', () => {
    expect(scopesOf(withAgent('{}'), { kind: 'agent', name: 'reviewer', owner: 'anna' })).toEqual([...chain, anna])
  })

  it('of a user is global and the user, whatever agents there are of the same name', () => {
    expect(scopesOf(withAgent('{}'), { kind: 'user', name: 'reviewer' })).toEqual([
      globalScope,
      { kind: 'user', name: 'reviewer' },
    ])
  })

  it('of a session goes over its project, its agent and its owner', () => {
    const session: Principal = { kind: 'session', name: 's1', owner: 'anna', project: 'shop' }
    const own: Scope = { kind: 'session', name: 's1' }
    expect(scopesOf(withAgent('{}'), session)).toEqual([globalScope, project, anna, own])
    const known = { name: 's1', agent: 'reviewer', owner: 'anna', servers: {}, rules: [] }
    const settings = toSettings(withAgent('{}'), { agents: [], sessions: [known] })
    expect(scopesOf(settings, { kind: 'session', name: 's1' })).toEqual([globalScope, project, agent, anna, own])
  })

  it('of a run is global and its project: an automation states nothing yet', () => {
    expect(scopesOf(withAgent('{}'), { kind: 'run', name: 'r', owner: 'anna' })).toEqual([globalScope])
    expect(scopesOf(withAgent('{}'), { kind: 'run', name: 'r', project: 'shop' })).toEqual([globalScope, project])
  })

  it('has keys that can be read back', () => {
    const keys: ScopeKey[] = ['global', 'project:shop', 'agent:a.b-c']
    for (const key of keys) expect(toScopeKey(toScope(key))).toBe(key)
  })
})

describe('a later scope', () => {
  it('adds a server of its own', () => {
    const config = withAgent('{ notes: { transport: http, url: "https://notes.example" } }')
    expect(serverOf(config, 'notes')).toMatchObject({ scope: 'agent:reviewer', connection: 'notes@agent:reviewer' })
    expect(effective(config, [globalScope]).servers.has('notes')).toBe(false)
  })

  it('overrides single fields and inherits the others', () => {
    const { definition } = serverOf(
      withAgent('{ files: { env: { LEVEL: debug, EXTRA: "1" }, timeout: { connect: 999 } } }'),
      'files',
    )
    expect(definition).toMatchObject({
      command: 'npx',
      args: ['a'],
      env: { LEVEL: 'debug', TOKEN: '${TOKEN}', EXTRA: '1' },
      timeout: { call: 5000, connect: 999, start: 120_000 },
    })
  })

  it('inherits everything it does not state even when it repeats the transport and the command', () => {
    const { definition } = serverOf(
      withAgent('{ files: { transport: stdio, command: npx, description: Mine } }'),
      'files',
    )
    expect(definition).toMatchObject({ args: ['a'], timeout: { call: 5000 }, description: 'Mine' })
  })

  it('switches a server off, for itself only', () => {
    const config = withAgent('{ files: { enabled: false } }')
    expect(serverOf(config, 'files').definition.enabled).toBe(false)
    expect(serverOf(config, 'files', [globalScope]).definition.enabled).toBe(true)
  })

  it('replaces args as a whole', () => {
    expect(serverOf(withAgent('{ files: { args: [b] } }'), 'files').definition).toMatchObject({ args: ['b'] })
  })

  it('changes the choice of tools field by field', () => {
    const config = withAgent(
      '{ files: { tools: { include: ["read_*"], override: { merge: { name: m }, other: { risk: read } } } } }',
    )
    expect(serverOf(config, 'files').definition.tools).toEqual({
      include: ['read_*'],
      exclude: ['delete_*'],
      override: { merge: { risk: 'danger', name: 'm' }, other: { risk: 'read' } },
    })
  })

  it('overrides a header in whatever case it is written', () => {
    const { definition } = serverOf(withAgent('{ github: { headers: { authorization: mine } } }'), 'github')
    expect(definition).toMatchObject({ headers: { authorization: 'mine', 'X-Trace': '1' } })
    expect(Object.keys('headers' in definition ? definition.headers : {})).toHaveLength(2)
  })

  it.each([
    ['url', '{ github: { transport: http, url: "https://two.example" } }', 'github'],
    ['transport', '{ github: { transport: sse, url: "https://one.example" } }', 'github'],
    ['command', '{ files: { transport: stdio, command: uvx } }', 'files'],
    ['everything', '{ files: { transport: http, url: "https://two.example" } }', 'files'],
  ])('that changes the %s inherits nothing', (_, servers, name) => {
    const { definition, origins } = serverOf(withAgent(servers), name)
    expect('headers' in definition ? definition.headers : definition.env).toEqual({})
    expect(definition).toMatchObject({ tools: { exclude: [], override: {} }, timeout: { call: 30_000 } })
    expect(definition.description).toBeUndefined()
    expect(new Set(Object.values(origins))).toEqual(new Set(['agent:reviewer']))
  })

  it('inherits nothing from before a replacement further down the chain either', () => {
    const config = withAgent(
      '{ github: { headers: { B: "2" } } }',
      '{ github: { transport: http, url: "https://two.example" } }',
    )
    expect(serverOf(config, 'github').definition).toMatchObject({ url: 'https://two.example', headers: { B: '2' } })
    expect(serverOf(config, 'github').definition).not.toHaveProperty('headers.Authorization')
  })
})

describe('the effective configuration', () => {
  it('tells which scope each value came from', () => {
    const { origins, scope } = serverOf(
      withAgent('{ files: { env: { LEVEL: debug } } }', '{ files: { timeout: { call: 1000 } } }'),
      'files',
    )
    expect(scope).toBe('agent:reviewer')
    expect(origins).toMatchObject({
      command: 'global',
      'env.TOKEN': 'global',
      'env.LEVEL': 'agent:reviewer',
      'timeout.call': 'project:shop',
      'timeout.start': 'global',
      'tools.exclude': 'global',
    })
  })

  it('keeps the rules of each scope apart', () => {
    const config = configOf(`${base}agents: { reviewer: { rules: [{ tools: a, action: deny }] }, quiet: {} }`)
    expect(effective(config, [globalScope, agent]).rules.map(({ scope, rules }) => [scope, rules.length])).toEqual([
      ['global', 1],
      ['agent:reviewer', 1],
    ])
    expect(effective(config, [globalScope, { kind: 'agent', name: 'quiet' }]).rules).toHaveLength(1)
  })

  it('has the same key exactly when its content is the same', () => {
    const config = configOf(`${base}
agents:
  quiet: {}
  same: { servers: { files: { args: [a] } } }
  other: { servers: { files: { description: Mine } } }
  off: { servers: { files: { enabled: false } } }
  strict: { rules: [{ action: deny }] }
`)
    const keyOf = (name: string) => effective(config, scopesOf(config, { kind: 'agent', name })).key
    const global = effective(config, [globalScope]).key
    expect([keyOf('quiet'), keyOf('same'), keyOf('stranger')]).toEqual([global, global, global])
    expect(new Set([global, keyOf('other'), keyOf('off'), keyOf('strict')]).size).toBe(4)
  })
})

describe('connections', () => {
  it('are shared by scopes that leave the link alone', () => {
    const config = withAgent(
      '{ files: { tools: { exclude: [] }, description: Mine, defaultRisk: read, trust: none, enabled: false } }',
    )
    expect(serverOf(config, 'files').connection).toBe('files')
    expect(connections(config).map(({ id }) => id)).toEqual(['files', 'github'])
  })

  it.each([
    '{ args: [b] }',
    '{ env: { A: "1" } }',
    '{ cwd: /srv }',
    '{ timeout: { call: 1 000 } }'.replace(' 000', '000'),
    '{ transport: stdio, command: uvx }',
    '{ transport: http, url: "https://x.example" }',
  ])('are made anew for a scope that says %s', (patch) => {
    expect(serverOf(withAgent(`{ files: ${patch} }`), 'files').connection).toBe('files@agent:reviewer')
  })

  it('of a project are shared by its agents', () => {
    const config = withAgent('{ files: { description: Mine } }', '{ files: { env: { A: "1" } } }')
    expect(serverOf(config, 'files').connection).toBe('files@project:shop')
    expect(connections(config)).toMatchObject([
      { id: 'files', name: 'files', scope: 'global' },
      { id: 'github', scope: 'global' },
      { id: 'files@project:shop', name: 'files', scope: 'project:shop', definition: { env: { A: '1' } } },
    ])
  })

  it('are wanted when any scope wants them, and switched off when none does', () => {
    const text = (agentSays: string) => `
servers: { a: { transport: stdio, command: x, enabled: false } }
agents: { reviewer: { servers: { a: { ${agentSays} } } } }`
    expect(connections(configOf(text('enabled: true')))).toMatchObject([{ id: 'a', definition: { enabled: true } }])
    expect(connections(configOf(text('description: x')))).toMatchObject([{ id: 'a', definition: { enabled: false } }])
  })

  it('keep their fingerprint unless the link changes', () => {
    const printOf = (patch: string) =>
      connections(configOf(`servers: { a: { transport: stdio, command: x, ${patch} } }`)).map(
        ({ fingerprint }) => fingerprint,
      )[0]
    const plain = printOf('')
    for (const same of ['description: y', 'enabled: false', 'trust: none', 'tools: { exclude: [b] }', 'args: []']) {
      expect(printOf(same)).toBe(plain)
    }
    for (const other of ['args: [b]', 'env: { A: "1" }', 'cwd: /', 'timeout: { call: 99 }']) {
      expect(printOf(other)).not.toBe(plain)
    }
  })

  it('of a thousand agents are worked out quickly', () => {
    const servers = Object.fromEntries(
      Array.from({ length: 100 }, (_, at) => [`s${at}`, { transport: 'stdio', command: 'x' }]),
    )
    const agents = Object.fromEntries(
      Array.from({ length: 1000 }, (_, at) => [`a${at}`, { servers: { [`s${at % 100}`]: { args: [String(at)] } } }]),
    )
    const config = Config.parse({ servers, agents })
    const before = process.cpuUsage()
    expect(connections(config)).toHaveLength(1100)
    // Of this process alone: how busy the machine is says nothing about us.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(2000)
  })
})

const texts = fc.dictionary(fc.constantFrom('A', 'B', 'C'), fc.constantFrom('1', '2', '${X}'), { maxKeys: 3 })
const lists = fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 })
const shared = {
  description: fc.constantFrom('one', 'two'),
  enabled: fc.boolean(),
  tools: fc.record({ include: lists, exclude: lists }, { requiredKeys: [] }),
  timeout: fc.record(
    { call: fc.integer({ min: 10, max: 99 }), connect: fc.integer({ min: 100, max: 199 }) },
    { requiredKeys: [] },
  ),
}
const stdioFields = { args: lists, env: texts, cwd: fc.constantFrom('/a', '/b'), ...shared }
const stdioPatch = fc.record(stdioFields, { requiredKeys: [] })
const stdioEntry = fc.record(
  { transport: fc.constant('stdio'), command: fc.constantFrom('x', 'y'), ...stdioFields },
  { requiredKeys: ['transport', 'command'] },
)
const httpEntry = fc.record(
  {
    transport: fc.constantFrom('http', 'sse'),
    url: fc.constantFrom('https://a', 'https://b'),
    headers: texts,
    ...shared,
  },
  { requiredKeys: ['transport', 'url'] },
)
const entry = fc.oneof(stdioEntry, httpEntry)

function stacked(first: unknown, second: unknown, third: unknown = {}): Config {
  return Config.parse({
    servers: { s: first },
    projects: { shop: { servers: { s: second } } },
    agents: { reviewer: { project: 'shop', servers: { s: third } } },
  })
}

describe('merging', () => {
  it('is deterministic, whatever the order of keys in the file', () => {
    fc.assert(
      fc.property(entry, entry, entry, (first, second, third) => {
        const reversed = (fields: object) => Object.fromEntries(Object.entries(fields).reverse())
        const once = effective(stacked(first, second, third), chain)
        const again = effective(stacked(reversed(first), reversed(second), reversed(third)), chain)
        expect(again.key).toBe(once.key)
        expect(again.servers.get('s')).toEqual(once.servers.get('s'))
      }),
    )
  })

  it('changes nothing for a scope that states nothing', () => {
    fc.assert(
      fc.property(entry, (first) => {
        const config = stacked(first, {}, { env: undefined })
        const global = effective(config, [globalScope])
        const whole = effective(config, chain)
        expect(whole.key).toBe(global.key)
        expect(serverOf(config, 's')).toEqual({ ...serverOf(config, 's', [globalScope]), scope: 'agent:reviewer' })
      }),
    )
  })

  it('hands no header and no env to an entry that replaces another', () => {
    fc.assert(
      fc.property(entry, entry, (first, second) => {
        const changed = ['transport', 'url', 'command'].some((key) => {
          const later = Object.entries(second).find(([name]) => name === key)?.[1]
          return later !== undefined && later !== Object.entries(first).find(([name]) => name === key)?.[1]
        })
        fc.pre(changed)
        const alone = Config.parse({ servers: { s: second } })
        expect(serverOf(stacked(first, second), 's', [globalScope, project]).definition).toEqual({
          ...alone.servers.s,
          trust: 'annotations',
        })
      }),
    )
  })

  it('lets the last scope win in every field', () => {
    fc.assert(
      fc.property(stdioEntry, stdioPatch, stdioPatch, (first, second, third) => {
        const config = stacked(first, second, third)
        const { definition, origins } = serverOf(config, 's')
        const layers = [
          layer('global', config.servers.s && { ...config.servers.s, trust: 'annotations' }),
          layer('project:shop', second),
          layer('agent:reviewer', third),
        ]
        for (const [key, value] of flatten(definition)) {
          const winner = layers.findLast(({ fields }) => fields.has(key))
          expect([key, value]).toEqual([key, winner?.fields.get(key)])
          expect([key, origins[key]]).toEqual([key, winner?.scope])
        }
      }),
    )
  })

  it('wants exactly the connections that some chain uses', () => {
    fc.assert(
      fc.property(entry, stdioEntry, httpEntry, (first, second, third) => {
        const config = stacked(first, second, third)
        const used = [[globalScope], [globalScope, project], chain].map(
          (scopes) => serverOf(config, 's', scopes).connection,
        )
        expect(new Set(connections(config).map(({ id }) => id))).toEqual(new Set(used))
      }),
    )
  })
})

function layer(scope: ScopeKey, fields: ServerPatch | undefined) {
  return { scope, fields: new Map(flatten(fields ?? {})) }
}

function flatten(fields: object, prefix = ''): [string, unknown][] {
  return Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    if (value === undefined) return []
    if (typeof value !== 'object' || Array.isArray(value)) return [[`${prefix}${name}`, value]]
    return flatten(value, `${prefix}${name}.`)
  })
}

describe('a complete entry of administrators', () => {
  const entry =
    '{ db: { transport: http, url: "https://db.example/mcp", headers: { Authorization: "Bearer ${KEY}" } } }'
  const owned = (servers: string) =>
    configOf(`
projects: { shop: { owners: [alice], servers: ${servers} } }
agents: { reviewer: { project: shop, servers: ${entry} } }
`)

  it('takes nothing from an entry that the owners of a project put under it', () => {
    const renamed = 'tools: { override: { delete_all: { name: get_all } } }'
    const header = '{ db: { transport: http, url: "https://db.example/mcp", headers: { Host: attacker.example }'
    const server = serverOf(owned(`${header}, ${renamed} } }`), 'db')
    expect(server.definition).toMatchObject({ headers: { Authorization: 'Bearer ${KEY}' }, tools: { override: {} } })
    expect(Object.keys(Object(server.definition).headers)).toEqual(['Authorization'])
    expect(server.lineage).toMatchObject([{ scope: 'agent:reviewer' }])
  })

  it('refines an entry of other administrators', () => {
    const config = withAgent('{ github: { transport: http, url: "https://one.example", description: Mine } }')
    expect(serverOf(config, 'github').definition).toMatchObject({ description: 'Mine', headers: { 'X-Trace': '1' } })
  })
})
