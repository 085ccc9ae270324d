import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mayChangeServer, type ServerAct, seesDefinition } from '../../src/config/config.ts'
import type { Principal } from '../../src/contract/principal.ts'
import { type ScopeKey, toScope } from '../../src/contract/scope.ts'
import { ServerDefinition, ServerPatch } from '../../src/contract/server.ts'
import { configOf } from './support.ts'

const config = configOf(`
projects: { shop: { owners: [olga] }, constructor: { owners: [] } }
members: { hosts: ["*.example.com", example.com] }
`)

const callers: Readonly<Record<string, Principal>> = {
  administrator: { kind: 'user', name: 'root', role: 'administrator', person: true },
  'token file': { kind: 'user', name: 'admin-token', role: 'administrator' },
  member: { kind: 'user', name: 'anna', role: 'member', person: true },
  'another member': { kind: 'user', name: 'ben', role: 'member', person: true },
  'project owner': { kind: 'user', name: 'olga', role: 'member', person: true },
  auditor: { kind: 'user', name: 'otto', role: 'auditor', person: true },
  agent: { kind: 'agent', name: 'anna', owner: 'anna' },
  session: { kind: 'session', name: 's1', owner: 'anna', project: 'shop' },
  run: { kind: 'run', name: 'r1', owner: 'olga', project: 'shop' },
}
const everywhere: readonly ScopeKey[] = ['global', 'project:shop', 'agent:reviewer', 'user:anna', 'session:s1']
const http = ServerPatch.parse({ transport: 'http', url: 'https://mcp.example.com/mcp' })
const stdio = ServerPatch.parse({ transport: 'stdio', command: 'npx' })

/** Session s1 is Anna's. */
function act(key: ScopeKey, more: Partial<ServerAct> = {}): ServerAct {
  return { action: 'add', scope: toScope(key), owner: key === 'session:s1' ? 'anna' : undefined, ...more }
}

function may(caller: string, wanted: ServerAct): boolean {
  const principal = callers[caller]
  return principal !== undefined && mayChangeServer(principal, wanted, config).may
}

describe('who may change the servers of a scope', () => {
  const table: [caller: string, scopes: readonly ScopeKey[]][] = [
    ['administrator', everywhere],
    ['token file', everywhere],
    ['member', ['user:anna', 'session:s1']],
    ['another member', []],
    ['project owner', ['project:shop']],
    ['auditor', []],
    ['agent', []],
    ['session', []],
    ['run', []],
  ]
  const actions: ServerAct['action'][] = ['add', 'change', 'remove', 'enable', 'disable', 'reconnect', 'validate']

  it.each(table)('%s: %s', (caller, scopes) => {
    for (const action of actions) {
      const allowed = everywhere.filter((key) => may(caller, act(key, { action, wanted: http, current: http })))
      expect([action, allowed]).toEqual([action, scopes])
    }
  })

  it('says who may, to those who may not', () => {
    const because = (caller: string, wanted: ServerAct) => {
      const judgement = mayChangeServer(callers[caller] ?? { kind: 'run', name: '' }, wanted, config)
      return judgement.may ? 'may' : judgement.because
    }
    expect(because('member', act('global'))).toBe(
      'Only administrators can change the servers of global; your own servers are in user:anna',
    )
    expect(because('member', act('project:shop'))).toBe(
      'Only administrators and the owners of the project can change the servers of project:shop',
    )
    expect(because('another member', act('user:anna'))).toContain('Only administrators and the user anna can change')
    expect(because('another member', act('session:s1'))).toContain('the owner of the session')
    expect(because('auditor', act('user:otto'))).toBe('Auditors can see servers but cannot change them')
    expect(because('agent', act('user:anna'))).toContain('their owner or an administrator can')
  })

  it('takes no name for a project that every object has', () => {
    expect(may('member', act('project:constructor'))).toBe(false)
    expect(may('member', act('project:toString'))).toBe(false)
  })
})

describe('who sees definitions', () => {
  const table: [caller: string, scopes: readonly ScopeKey[]][] = [
    ['administrator', everywhere],
    ['token file', everywhere],
    ['auditor', everywhere],
    ['member', ['user:anna', 'session:s1']],
    ['project owner', ['project:shop']],
    ['agent', []],
    ['session', []],
  ]
  it.each(table)('%s: %s', (caller, scopes) => {
    const principal = callers[caller]
    if (principal === undefined) throw new Error('nobody')
    expect(everywhere.filter((key) => seesDefinition(principal, act(key), config))).toEqual(scopes)
  })
})

describe('commands', () => {
  const inherited = ServerDefinition.parse({ transport: 'stdio', command: 'npx', args: ['-y', 'x@1'] })
  const attempts: [what: string, wanted: Partial<ServerAct>][] = [
    ['a new command', { action: 'add', wanted: stdio }],
    ['a server that becomes a command', { action: 'change', current: http, wanted: stdio }],
    ['another command', { action: 'change', wanted: ServerPatch.parse({ command: 'sh' }), inherited }],
    ['other arguments', { action: 'change', wanted: ServerPatch.parse({ args: ['-c', 'evil'] }), inherited }],
    ['variables', { action: 'change', wanted: ServerPatch.parse({ env: { NODE_OPTIONS: '-r x' } }), inherited }],
    ['no variables at all', { action: 'change', wanted: ServerPatch.parse({ env: {} }), inherited }],
    ['another folder', { action: 'change', wanted: ServerPatch.parse({ cwd: '/tmp' }), inherited }],
    ['secrets in arguments', { action: 'change', wanted: ServerPatch.parse({ secretsInArguments: true }), inherited }],
    ['more processes by other limits', { action: 'change', wanted: { timeout: { call: 99 } }, inherited }],
    ['a command instead of an address', { action: 'change', wanted: http, current: stdio }],
    ['an entry with a command, removed', { action: 'remove', current: stdio }],
    ['an entry with a command, switched on', { action: 'enable', current: stdio, wanted: { ...stdio, enabled: true } }],
    ['a command to be tried', { action: 'validate', wanted: stdio }],
    ['an address beside a command', { action: 'add', wanted: ServerPatch.parse({ ...http, command: 'sh' }) }],
  ]

  it.each(attempts)('%s: administrators only', (_what, wanted) => {
    for (const caller of ['administrator', 'token file']) expect(may(caller, act('global', wanted))).toBe(true)
    expect(may('member', act('user:anna', wanted))).toBe(false)
    expect(may('member', act('session:s1', wanted))).toBe(false)
    expect(may('project owner', act('project:shop', wanted))).toBe(false)
  })

  it('that are inherited can be switched off for oneself, and on again', () => {
    const off = act('user:anna', { action: 'disable', wanted: { enabled: false }, inherited })
    expect(may('member', off)).toBe(true)
    expect(may('member', { ...off, action: 'enable', current: { enabled: false }, wanted: { enabled: true } })).toBe(
      true,
    )
    const absent = { ...inherited, enabled: false }
    expect(may('member', { ...off, action: 'enable', wanted: { enabled: true }, inherited: absent })).toBe(false)
  })

  it('that an administrator wrote may be tried as they are, and reconnected', () => {
    expect(may('project owner', act('project:shop', { action: 'validate', current: stdio }))).toBe(true)
    expect(may('project owner', act('project:shop', { action: 'reconnect', current: stdio }))).toBe(true)
  })
})

describe('addresses', () => {
  const add = (url: string, transport = 'http') => {
    const { data: wanted } = ServerPatch.safeParse({ transport, url })
    return wanted !== undefined && may('member', act('user:anna', { wanted }))
  }

  it.each(['https://example.com', 'http://MCP.example.com:8080/x?y', 'https://a.example.com./${PATH}?k=${KEY}'])(
    'may be %s',
    (url) => {
      expect(add(url)).toBe(true)
      expect(add(url, 'sse')).toBe(true)
    },
  )

  it.each([
    'https://evil.example',
    'https://example.com.evil.example',
    'https://example.com@evil.example/',
    'https://evil.example\\@example.com/',
    'https://${HOST}/',
    'https://${HOST:-mcp.example.com}/',
    'https://mcp.example.com${REST}',
    'https://mcp.example.com:${PORT}/',
    '${URL}',
    'https:${URL}',
    'https:/${URL}',
    'https:///${URL}',
    'https://\t/${URL}',
    ' https://mcp.example.com',
    'ftp://mcp.example.com',
    'file:///etc/passwd',
    'unix:///run/x.sock',
    'mcp.example.com',
    'https://[::1]/',
    'https://127.0.0.1/',
  ])('may not be %j', (url) => {
    expect(add(url)).toBe(false)
  })

  it('are the operator’s choice by transport too', () => {
    const narrow = configOf('members: { transports: [sse] }')
    const none = configOf('members: { transports: [], hosts: [] }')
    const member = callers.member ?? { kind: 'user', name: 'anna' }
    const judge = (among: typeof config, transport: string) =>
      mayChangeServer(member, act('user:anna', { wanted: ServerPatch.parse({ ...http, transport }) }), among)
    expect(judge(narrow, 'sse')).toEqual({ may: true })
    expect(judge(narrow, 'http')).toMatchObject({ because: expect.stringContaining('allowed: sse') })
    expect(judge(none, 'sse')).toMatchObject({ may: false })
    expect(judge(configOf('{}'), 'http')).toEqual({ may: true })
  })
})

it('has no room for more entries than the operator allows, whatever they are', () => {
  const few = configOf('members: { servers: 2 }')
  const member = callers.member ?? { kind: 'user', name: 'anna' }
  const judge = (more: Partial<ServerAct>) =>
    mayChangeServer(member, act('user:anna', { wanted: http, ...more }), few).may
  expect(judge({ entries: 1 })).toBe(true)
  expect(judge({ entries: 2 })).toBe(false)
  expect(judge({ entries: 2, current: http, action: 'change' })).toBe(true)
  expect(judge({ entries: 2, action: 'validate' })).toBe(true)
  expect(judge({ entries: 2, action: 'disable', wanted: { enabled: false } })).toBe(false)
})

describe('an inherited server', () => {
  const inherited = ServerDefinition.parse({
    transport: 'http',
    url: 'https://github.example.com',
    title: 'GitHub',
    headers: { Authorization: 'Bearer ${TOKEN}' },
    trust: 'annotations',
    defaultRisk: 'write',
    limits: { concurrent: 4 },
    tools: { exclude: ['delete_*'], override: { merge: { risk: 'danger', name: 'join', limits: { concurrent: 1 } } } },
  })
  const change = (wanted: object, among = inherited) =>
    may('member', act('user:anna', { action: 'change', wanted: ServerPatch.parse(wanted), inherited: among }))

  it.each([
    { headers: { Authorization: 'Bearer ${MINE}' } },
    { enabled: false },
    { description: 'Mine' },
    { title: 'GitHub' },
    { timeout: { call: 99 } },
    { trust: 'none' },
    { trust: 'annotations' },
    { defaultRisk: 'danger' },
    { defaultRisk: 'write' },
    { limits: { concurrent: 2, callsPerMinute: 60 } },
    { tools: { exclude: ['delete_*', 'merge'] } },
    { tools: { include: ['list_*'] } },
    { tools: { override: { list: { risk: 'danger' }, merge: { risk: 'danger', name: 'join' } } } },
  ])('can be changed for oneself by %j', (wanted) => {
    expect(change(wanted)).toBe(true)
  })

  it.each([
    { url: 'https://mine.example.com' },
    { url: 'https://github.example.com/${X}' },
    { transport: 'sse' },
    { headers: { host: 'mine.example.com' } },
    { defaultRisk: 'read' },
    { tools: { exclude: [] } },
    { tools: { exclude: ['merge'] } },
    { tools: { override: { merge: { risk: 'write' } } } },
    { limits: { concurrent: 5 } },
    { title: 'GitHub (official)' },
    { tools: { override: { merge: { limits: { concurrent: 2 } } } } },
    { tools: { override: { list: { name: 'other' } } } },
    { tools: { override: { list: { description: 'other' } } } },
  ])('cannot be taken over or loosened by %j', (wanted) => {
    expect(change(wanted)).toBe(false)
  })

  it('is not trusted further, not offered further and not switched on by those who only use it', () => {
    const strict: ServerDefinition = {
      ...inherited,
      trust: 'none',
      enabled: false,
      tools: { include: ['list_*'], exclude: [], override: {} },
    }
    expect(change({ trust: 'annotations' }, strict)).toBe(false)
    expect(change({ enabled: true }, strict)).toBe(false)
    expect(change({ tools: { include: ['*'] } }, strict)).toBe(false)
    expect(change({ tools: { include: ['list_*'] } }, strict)).toBe(true)
  })
})

describe('a server of one’s own', () => {
  const add = (more: object) => may('member', act('user:anna', { wanted: ServerPatch.parse({ ...http, ...more }) }))

  it.each([
    { trust: 'annotations' },
    { defaultRisk: 'read' },
    { defaultRisk: 'write' },
    { tools: { override: { pay: { risk: 'read' } } } },
  ])('is not made harmless by %j', (more) => {
    expect(add(more)).toBe(false)
  })

  it('may be named, chosen from and made more dangerous at will', () => {
    const tools = { include: ['a*'], exclude: ['b*'], override: { a: { name: 'c', description: 'd', risk: 'danger' } } }
    expect(add({ trust: 'none', defaultRisk: 'danger', tools, enabled: false, headers: { A: '${MINE}' } })).toBe(true)
  })
})

it('never lets a command, a new address of an old name or lower risk through, whatever is combined', () => {
  const fields = fc.record(
    {
      transport: fc.constantFrom('stdio', 'http', 'sse'),
      url: fc.constantFrom('https://mcp.example.com', 'https://other.example.com', '${URL}'),
      command: fc.constantFrom('npx', 'sh'),
      args: fc.constant(['-c']),
      env: fc.constant({ A: '1' }),
      headers: fc.constantFrom({ A: '1' }, { Host: 'x' }),
      trust: fc.constantFrom('annotations', 'none'),
      defaultRisk: fc.constantFrom('read', 'write', 'danger'),
      enabled: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  const before = ServerDefinition.parse({ transport: 'http', url: 'https://mcp.example.com', trust: 'none' })
  fc.assert(
    fc.property(fields, fc.boolean(), (stated, inherits) => {
      const wanted = ServerPatch.parse(stated)
      const inherited = inherits ? before : undefined
      if (!may('member', act('user:anna', { action: 'change', wanted, inherited }))) return
      expect([wanted.command, wanted.args, wanted.env]).toEqual([undefined, undefined, undefined])
      expect(wanted.transport).not.toBe('stdio')
      expect(wanted.trust).not.toBe('annotations')
      expect(['danger', undefined]).toContain(wanted.defaultRisk)
      if (inherits) expect(['https://mcp.example.com', undefined]).toContain(wanted.url)
    }),
    { numRuns: 200 },
  )
})
