import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Principal } from '../../src/contract/principal.ts'
import { planServers } from '../../src/imports/plan.ts'
import { administrator, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { importText, outcomes, toText } from './stage.ts'

const token = `ghp_${'a1B2'.repeat(9)}`
const ada: Principal = { kind: 'user', name: 'ada', role: 'member', person: true }
const remote = (host: string, fields: object = {}) => ({
  transport: 'http',
  url: `https://${host}.example/mcp`,
  disabled: true,
  ...fields,
})
const command = (fields: object = {}) => ({ transport: 'stdio', command: 'notes', disabled: true, ...fields })

let gate: TestGateway
beforeAll(async () => {
  gate = await startTestGateway({
    environment: ['LOG_LEVEL'],
    servers: { known: { transport: 'http', url: 'https://known.example/mcp', enabled: false } },
    projects: { shop: { owners: ['ada'] } },
    agents: { reviewer: { servers: { known: { enabled: false } } } },
  })
  await gate.gateway.users.add(administrator, { name: 'ada', password: 'correct horse battery', role: 'member' })
})
afterAll(() => gate.close())

const preview = (text: string, by = administrator, scope?: 'global' | 'project:shop' | 'user:ada' | 'user:bob') =>
  gate.gateway.imports.preview(by, { text, scope })

async function listEntries(): Promise<string> {
  const { items } = await gate.gateway.audit.list({ limit: 200 })
  return JSON.stringify(items)
}

describe('a preview', () => {
  it('changes nothing and starts nothing', async () => {
    const marker = join(gate.folder, 'started')
    const before = await readFile(gate.configFile, 'utf8')
    const { servers } = preview(
      toText({ evil: { transport: 'stdio', command: '/bin/sh', args: ['-c', `touch ${marker}`] } }),
    )
    expect(servers).toMatchObject([{ name: 'evil', outcome: 'new' }])
    expect(await readFile(gate.configFile, 'utf8')).toBe(before)
    await expect(readFile(marker)).rejects.toThrow('ENOENT')
  })

  it('shows no secret value, and names the secrets that are stored', () => {
    const text = toText({
      a: remote('a', { headers: { Authorization: `Bearer ${token}` } }),
      b: command({ env: { B_TOKEN: token, LEVEL: 'warn', C_KEY: '<your-key>' } }),
    })
    const result = preview(text)
    expect(JSON.stringify(result)).not.toContain(token)
    expect(result.secrets).toEqual([
      { name: 'A_AUTHORIZATION', scope: 'global', servers: ['a'], state: 'new' },
      { name: 'B_TOKEN', scope: 'global', servers: ['b'], state: 'new' },
      { name: 'C_KEY', scope: 'global', servers: ['b'], state: 'missing' },
    ])
    expect(result.servers[1]?.definition).toMatchObject({
      env: { B_TOKEN: '${B_TOKEN}', C_KEY: '${C_KEY}', LEVEL: 'warn' },
    })
  })

  it('says which variables are listed', () => {
    const { variables } = preview(toText({ a: command({ env: { A: '${LOG_LEVEL}', B: '${REGION:-eu}' } }) }))
    expect(variables).toEqual([
      { name: 'LOG_LEVEL', servers: ['a'], listed: true, fallback: false },
      { name: 'REGION', servers: ['a'], listed: false, fallback: true },
    ])
  })

  it('recognises a server by name, by definition, and under another name', () => {
    const same = { transport: 'http', url: 'https://known.example/mcp' }
    const result = preview(toText({ known: same, other: { ...same, disabled: true }, third: remote('third') }))
    expect(outcomes(result)).toEqual(['known same', 'other new', 'third new'])
    expect(result.servers[1]?.notes).toContain('the same server exists as known')
    expect(outcomes(preview(toText({ known: remote('other') })))).toEqual(['known changed'])
  })

  it('notes a server of the same name in another scope', () => {
    const text = toText({ known: remote('known', { disabled: undefined }) })
    expect(preview(text).servers).toMatchObject([{ outcome: 'same' }])
    expect(outcomes(preview(toText({ sallyport: remote('x') })))).toEqual(['sallyport-2 new'])
  })

  it('skips the gateway itself', () => {
    const text = toText({ sallyport: { transport: 'stdio', command: 'npx', args: ['sallyport', 'stdio'] } })
    expect(preview(text).servers).toMatchObject([{ outcome: 'skipped', notes: ['leads to this gateway'] }])
  })

  it.each([
    ['nothing that it knows', '{ "a": 1 }', 'import-unrecognised'],
    [
      'ten thousand servers',
      toText(
        Object.fromEntries(
          Array.from({ length: 10_000 }, (_, at) => [`s${at}`, { transport: 'http', url: 'https://a.example' }]),
        ),
      ),
      'import-unreadable',
    ],
    ['more than 1 MiB', `{"a":"${'x'.repeat(1_048_576)}"}`, 'import-unreadable'],
  ])('refuses a text with %s', (_, text, code) => {
    expect(() => preview(text)).toThrow(expect.objectContaining({ code }))
  })

  it.each([
    ['a broken template', { a: command({ env: { A: '${' } }) }, 'new'],
    ['a header with a line break', { a: remote('a', { headers: { X: 'a\r\nB: c' } }) }, 'skipped'],
    ['a relative working folder', { a: command({ cwd: 'somewhere' }) }, 'skipped'],
    ['an address that is no address', { a: { transport: 'http', url: 'javascript:alert(1)' } }, 'skipped'],
  ])('judges each server alone: %s', (_, servers, outcome) => {
    const result = preview(toText({ ...servers, fine: remote('fine') }))
    expect(outcomes(result)).toEqual([`a ${outcome}`, 'fine new'])
  })
})

it('skips a server that the file of a repository defines', () => {
  const { config } = gate.gateway
  const parts = { config: { ...config, fileOf: () => '/repo/servers.yaml' }, sees: () => true, isOwn: () => false }
  const definition = { transport: 'http' as const, url: 'https://a.example/mcp' }
  const servers = [{ key: 'a', definition, notes: [], needs: [] }]
  const inProject = planServers(parts, administrator, { servers, scope: { kind: 'project', name: 'shop' } })
  expect(inProject).toMatchObject([
    { outcome: 'skipped', notes: ['comes from /repo/servers.yaml, which is not changed'] },
  ])
  const inGlobal = planServers(parts, administrator, { servers, scope: { kind: 'global' } })
  expect(inGlobal).toMatchObject([{ outcome: 'new' }])
})

describe('user name and password in an address', () => {
  it('become a secret header', () => {
    const result = preview(toText({ a: remote('a', { url: 'https://kim:s3cr%65t@a.example/mcp' }) }))
    expect(result.servers[0]?.definition).toMatchObject({
      url: 'https://a.example/mcp',
      headers: { Authorization: 'Basic ${A_AUTHORIZATION}' },
    })
    expect(JSON.stringify(result)).not.toMatch(/s3cr|a2lt/)
  })

  it('are refused beside a header Authorization', () => {
    const headers = { authorization: 'Bearer ${TOKEN}' }
    const result = preview(toText({ a: remote('a', { url: 'https://kim:secret@a.example/mcp', headers }) }))
    expect(result.servers).toMatchObject([{ outcome: 'skipped' }])
    expect(JSON.stringify(result)).not.toContain('kim')
  })
})

describe('an import', () => {
  it('saves all servers in one change, with the secrets in the store and nowhere else', async () => {
    const text = toText({
      one: remote('one', { headers: { Authorization: `Bearer ${token}` }, autoApprove: ['*'], trust: true }),
      two: command({ alwaysAllow: ['delete'] }),
    })
    const result = await importText(gate.gateway, text)
    expect(result.servers).toMatchObject([
      { name: 'one', saved: true, state: 'disabled' },
      { name: 'two', saved: true, state: 'disabled' },
    ])
    const { servers, rules } = gate.gateway.config.current()
    expect(servers.one).toMatchObject({ headers: { Authorization: 'Bearer ${ONE_AUTHORIZATION}' } })
    expect(servers.one?.trust ?? servers.one?.defaultRisk ?? servers.two?.trust).toBeUndefined()
    expect(rules).toEqual([])
    const entries = await listEntries()
    expect(entries).toContain('"change":"imported","from":["mcp-servers.json"]')
    for (const place of [JSON.stringify(result), entries, await readFile(gate.configFile, 'utf8')])
      expect(place).not.toContain(token)
    expect(gate.gateway.secrets.list(administrator)).toMatchObject([{ name: 'ONE_AUTHORIZATION', servers: ['one'] }])
    expect(outcomes(preview(text))).toEqual(['one same', 'two same'])
  })

  it('is refused with the hash of another text, scope or person, and saves nothing', async () => {
    const text = toText({ swapped: remote('swapped') })
    const { hash } = preview(text)
    const others = [
      { by: administrator, text: toText({ swapped: remote('evil') }), hash },
      { by: administrator, text, scope: 'agent:reviewer' as const, hash },
      { by: { ...administrator, name: 'eve' }, text, hash },
      { by: administrator, text, hash: 'x' },
    ]
    for (const { by, ...request } of others)
      await expect(gate.gateway.imports.apply(by, request)).rejects.toMatchObject({ code: 'import-changed' })
    expect(gate.gateway.config.current().servers).not.toHaveProperty('swapped')
  })

  it('is refused when a server has changed since the preview', async () => {
    const text = toText({ late: remote('late') })
    const { hash } = preview(text)
    const definition = { transport: 'http' as const, url: 'https://x.example', enabled: false }
    await gate.gateway.config.change(
      { kind: 'add-server', name: 'x', definition: definition as never },
      { by: administrator },
    )
    await expect(gate.gateway.imports.apply(administrator, { text, hash })).rejects.toMatchObject({
      code: 'import-changed',
    })
  })

  it('replaces a server only if it is named', async () => {
    const text = toText({ known: remote('replacement') })
    const [kept] = (await importText(gate.gateway, text)).servers
    expect(kept).toMatchObject({ outcome: 'changed', saved: false })
    const unknown = importText(gate.gateway, text, { replace: ['one'] })
    await expect(unknown).rejects.toMatchObject({ code: 'request-invalid' })
    const [replaced] = (await importText(gate.gateway, text, { replace: ['known'] })).servers
    expect(replaced).toMatchObject({ saved: true, definition: { url: 'https://replacement.example/mcp' } })
  })

  it('adds variables to the list only if an administrator names them', async () => {
    const text = toText({ region: command({ env: { R: '${REGION}', S: '${SALLYPORT_KEY}' } }) })
    await importText(gate.gateway, text)
    expect(gate.gateway.config.current().environment).toEqual(['LOG_LEVEL'])
    const more = toText({ region2: command({ env: { R: '${REGION}' } }) })
    await expect(importText(gate.gateway, more, { environment: ['PATH'] })).rejects.toMatchObject({
      code: 'request-invalid',
    })
    const asMember = importText(gate.gateway, toText({ m: remote('m') }), { by: ada, environment: ['REGION'] })
    await expect(asMember).rejects.toMatchObject({ code: 'forbidden' })
    await importText(gate.gateway, more, { environment: ['REGION'] })
    expect(gate.gateway.config.current().environment).toEqual(['LOG_LEVEL', 'REGION'])
  })

  it('removes the new secrets if the change fails', async () => {
    const before = gate.gateway.secrets.list(administrator).map(({ name }) => name)
    const text = toText({ own: command({ env: { OWN_TOKEN: token, S: '${SALLYPORT_KEY}' } }) })
    const failing = importText(gate.gateway, text, { environment: ['SALLYPORT_KEY'] })
    await expect(failing).rejects.toMatchObject({ code: 'config-invalid' })
    expect(gate.gateway.secrets.list(administrator).map(({ name }) => name)).toEqual(before)
  })
})

describe('a member', () => {
  it('imports into the own scope, and nothing that the member could not add', async () => {
    const text = toText({
      mine: remote('mine'),
      program: command(),
      risky: remote('risky', { env: undefined }),
      known: remote('replacement'),
    })
    const result = await importText(gate.gateway, text, { by: ada })
    expect(result.servers.map(({ name, scope, outcome, saved }) => [name, scope, outcome, saved])).toEqual([
      ['mine', 'user:ada', 'new', true],
      ['program', 'user:ada', 'skipped', false],
      ['risky', 'user:ada', 'new', true],
      ['known', 'user:ada', 'new', true],
    ])
    expect(result.servers[1]?.notes[0]).toMatch(/Only administrators/)
  })

  it.each(['global', 'project:shop', 'user:bob'] as const)('cannot import into %s', (scope) => {
    expect(() => preview(toText({ a: remote('a') }), ada, scope)).toThrow(
      expect.objectContaining({ code: 'forbidden' }),
    )
  })

  it('gets no agent servers and no lowered risk', () => {
    const toml = '[[agents]]\nname = "reviewer"\n[[agents.mcp]]\nname = "a"\nurl = "https://a.example"\n'
    expect(outcomes(preview(toml, ada))).toEqual(['agent:reviewer/a skipped'])
    const risk = 'mcp_connectors: [{ name: a, kind: remote_http, url: "https://a.example", default_risk: read }]'
    expect(outcomes(preview(risk, ada))).toEqual(['user:ada/a skipped'])
  })

  it('learns nothing about the definitions of others', () => {
    const result = preview(toText({ probe: remote('one'), one: remote('one') }), ada)
    expect(result.servers.flatMap(({ notes }) => notes).join()).not.toMatch(/exists|same/)
  })
})
