import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { Rule } from '../../../src/contract/rule.ts'
import { createFolder, recording, runCli, serve, until, writeConfig } from '../../cli/support.ts'
import { type ConfigInput, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { call, recordingServer } from './support.ts'

const rules: NonNullable<ConfigInput['rules']> = [
  { tools: 'files_*', risk: 'write', action: 'allow' },
  { tools: 'files_write_thing', arguments: { '/path': { glob: '/etc/*' } }, action: 'deny', name: 'Not there' },
  { principal: 'agent:other', action: 'deny', reason: 'a secret about another one' },
]

function start(more: Partial<ConfigInput> = {}) {
  const recorded = recordingServer()
  const config = { servers: { files: recorded.server }, rules, ...more }
  return startTestGateway(config).then((gateway) => ({ gateway, ...recorded }))
}

type Asking = { method?: string; body?: unknown; agent?: string }

/** A request with the administrator's token file, or as an agent. */
async function ask(gateway: TestGateway, path: string, { method = 'GET', body, agent }: Asking = {}) {
  const file = join(gateway.folder, 'data', 'admin-token')
  const token = agent ? await gateway.token(agent) : (await readFile(file, 'utf8')).trim()
  const response = await fetch(`${gateway.url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: Object(await response.json()) }
}

const test = (gateway: TestGateway, body: object, agent?: string) =>
  ask(gateway, '/rules/test', { method: 'POST', body, ...(agent && { agent }) })
const replay = (gateway: TestGateway, body: object, agent?: string) =>
  ask(gateway, '/rules/replay', { method: 'POST', body, ...(agent && { agent }) })

it('explains which rule decides about a call and why, exactly as the call is then decided', async () => {
  const { gateway, received } = await start({ agents: { tester: { rules: [{ risk: 'write', action: 'ask' }] } } })
  await using _ = gateway
  const asked = { tool: 'files_write_thing', agent: 'tester', arguments: { path: '/etc/passwd' } }
  const { status, body } = await test(gateway, asked)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    known: true,
    server: 'files',
    risk: 'write',
    riskFrom: 'annotations',
    principal: 'agent:tester',
    action: 'deny',
    because: 'rule 2 of global "Not there" denies',
    rule: { scope: 'global', index: 1, name: 'Not there' },
    scopes: [
      {
        scope: 'global',
        action: 'deny',
        rules: [
          { index: 0, matches: true, decides: false },
          { index: 1, matches: true, decides: true },
          { index: 2, mismatch: { part: 'principal' } },
        ],
      },
      { scope: 'agent:tester', action: 'ask' },
    ],
  })
  const made = await call(gateway, 'files_write_thing', { given: { path: '/etc/passwd' } })
  expect(made.call.decision).toBe(body.because)
  const allowed = await test(gateway, { ...asked, agent: 'free', arguments: { path: '/srv/a' } })
  expect(allowed.body).toMatchObject({ action: 'allow', rule: { index: 0 } })
  expect(await received()).toEqual([])
})

it('explains calls of tools that do not exist yet, and rules that are not in force yet', async () => {
  const { gateway } = await start()
  await using _ = gateway
  const unknown = await test(gateway, { tool: 'files_new_thing' })
  expect(unknown.body).toMatchObject({
    known: false,
    server: 'files',
    risk: 'write',
    riskFrom: 'default',
    action: 'allow',
  })
  const told = await test(gateway, { tool: 'shop_refund', server: 'shop', risk: 'danger' })
  expect(told.body).toMatchObject({ known: false, server: 'shop', risk: 'danger', riskFrom: 'given', action: 'ask' })
  const changed = { rules: [{ server: 'shop', action: 'deny' }] }
  const would = await test(gateway, { tool: 'shop_refund', server: 'shop', risk: 'danger', rules: changed })
  expect(would.body).toMatchObject({ action: 'deny', rule: { scope: 'global', index: 0 } })
  const wrong = await test(gateway, { tool: 'x', rules: { rules: [{ action: 'maybe' }] } })
  expect(wrong.status).toBe(400)
})

it('lets an agent ask what would happen to itself, and nothing about others', async () => {
  const { gateway } = await start()
  await using _ = gateway
  const own = await test(gateway, { tool: 'files_write_thing' }, 'tester')
  expect(own.body).toMatchObject({ principal: 'agent:tester', action: 'allow' })
  expect((await test(gateway, { tool: 'files_write_thing', agent: 'tester' }, 'tester')).status).toBe(200)
  expect((await test(gateway, { tool: 'files_write_thing', agent: 'other' }, 'tester')).status).toBe(403)
  expect((await test(gateway, { tool: 'x', principal: 'user:admin-token' }, 'tester')).status).toBe(403)
  expect((await ask(gateway, '/rules?agent=other', { agent: 'tester' })).status).toBe(403)
  const listed = await ask(gateway, '/rules', { agent: 'tester' })
  expect(listed.body.items[0].rules.map(({ index }: { index: number }) => index)).toEqual([0, 1])
  expect(JSON.stringify([own.body, listed.body])).not.toContain('a secret about another one')
  expect((await replay(gateway, { agent: 'other' }, 'tester')).status).toBe(403)
  expect((await ask(gateway, '/rules', { method: 'PUT', body: { rules: [] }, agent: 'tester' })).status).toBe(403)
})

it('lists all rules by scope for whoever looks after them, those of one scope, and those that concern somebody', async () => {
  const past = '2020-01-01T00:00:00Z'
  const { gateway } = await start({
    projects: { shop: { rules: [{ project: 'shop', action: 'ask', expires: past }] } },
    agents: { buyer: { project: 'shop' } },
  })
  await using _ = gateway
  const scopesOf = async (query: string) => {
    const { body } = await ask(gateway, `/rules${query}`)
    expect(body.next).toBeNull()
    return body.items.map((item: { scope: string; rules: unknown[] }) => [item.scope, item.rules.length])
  }
  expect(await scopesOf('')).toEqual([
    ['global', 3],
    ['project:shop', 1],
  ])
  expect(await scopesOf('?scope=project:shop')).toEqual([['project:shop', 1]])
  expect(await scopesOf('?agent=buyer')).toEqual([
    ['global', 2],
    ['project:shop', 1],
  ])
  expect(await scopesOf('?principal=agent:stranger')).toEqual([['global', 2]])
  expect((await ask(gateway, '/rules?agent=buyer')).body.items[1].rules[0]).toMatchObject({ index: 0, expired: true })
})

it('replays changed rules over past calls: what would change, in sum and each, and calls nothing', async () => {
  const { gateway, received } = await start()
  await using _ = gateway
  await gateway.token('careless') // calls belong to an identity, so it has to be there before them
  await call(gateway, 'files_read_thing')
  await call(gateway, 'files_write_thing', { given: { path: '/srv/a' } })
  await call(gateway, 'files_write_thing', { given: { path: '/etc/a' } })
  await call(gateway, 'files_write_thing', { given: { path: '[secret]/a' }, as: 'careless' })
  await call(gateway, 'files_nothing')
  const before = await received()
  const changed = {
    rules: [
      { tools: 'files_*', action: 'allow' },
      { risk: 'read', action: 'deny' },
      { arguments: { '/path': { glob: '/srv/*' } }, action: 'ask', name: 'Careful' },
    ],
  }
  const { body } = await replay(gateway, { rules: changed })
  expect(body).toMatchObject({
    looked: 5,
    changed: 3,
    uncertain: 1,
    summary: { 'allow → deny': 1, 'allow → ask': 1, 'deny → allow': 1 },
    next: null,
  })
  expect(body.items).toMatchObject([
    {
      principal: 'agent:careless',
      before: 'allow',
      after: 'allow',
      uncertain: 'the record contains /path only masked',
    },
    { tool: 'files_write_thing', before: 'deny', after: 'allow' },
    { before: 'allow', after: 'ask', because: 'rule 3 of global "Careful" requires approval' },
    { tool: 'files_read_thing', before: 'allow', after: 'deny' },
  ])
  expect((await replay(gateway, { rules: changed, agent: 'careless' })).body).toMatchObject({ looked: 1, changed: 0 })
  expect((await replay(gateway, { rules: changed, tool: 'files_read_thing' })).body).toMatchObject({ looked: 1 })
  expect((await replay(gateway, { rules: changed }, 'careless')).body).toMatchObject({ looked: 1, uncertain: 1 })
  expect(await received()).toEqual(before)

  const first = await replay(gateway, { rules: changed, limit: 2 })
  expect(first.body).toMatchObject({ looked: 2, changed: 0 })
  const rest = await replay(gateway, { rules: changed, cursor: first.body.next })
  expect(rest.body).toMatchObject({ looked: 3, changed: 3, next: null })
  const later = new Date(Date.now() + 60_000).toISOString()
  expect((await replay(gateway, { rules: changed, since: later })).body).toMatchObject({ looked: 0, next: null })
})

it('replays the rules in force over what was decided before they were changed', async () => {
  const { gateway } = await start()
  await using _ = gateway
  await call(gateway, 'files_write_thing')
  expect((await replay(gateway, {})).body).toMatchObject({ looked: 1, changed: 0, items: [] })
  const put = await ask(gateway, '/rules', { method: 'PUT', body: { rules: [{ action: 'deny' }] } })
  expect(put.status).toBe(200)
  expect((await replay(gateway, {})).body).toMatchObject({ summary: { 'allow → deny': 1 } })
})

it('sets the rules of a scope, which then decide, are in the file, and are recorded with the difference', async () => {
  const { gateway } = await start({ projects: { shop: { owners: ['kim'] } }, agents: { tester: { project: 'shop' } } })
  await using _ = gateway
  const kept = rules[0]
  const put = { method: 'PUT', body: { rules: [kept, { tools: '*_read_*', action: 'deny', reason: 'closed' }] } }
  const { status, body } = await ask(gateway, '/rules', put)
  expect(status).toBe(200)
  expect(body).toMatchObject({ scope: 'global', rules: [{ index: 0 }, { index: 1, reason: 'closed', expired: false }] })
  expect(await call(gateway, 'files_read_thing')).toMatchObject({ error: { code: 'call-denied' } })
  expect(JSON.parse(await readFile(gateway.configFile, 'utf8')).rules).toEqual(put.body.rules)
  const { items } = await gateway.gateway.audit.list({ limit: 10, kind: 'change' })
  expect(items.filter(({ subject }) => subject === 'rules:global')).toMatchObject([
    {
      principal: 'user:admin-token',
      body: {
        change: 'rules',
        scope: 'global',
        added: [{ index: 1, rule: { reason: 'closed' } }],
        removed: [{ index: 1 }, { index: 2 }],
      },
    },
  ])
  expect(items.filter(({ principal }) => principal === 'file')).toEqual([])
  await ask(gateway, '/rules', put)
  expect((await gateway.gateway.audit.list({ limit: 10, kind: 'change', subject: 'rules:global' })).items).toHaveLength(
    1,
  )

  const wrong = await ask(gateway, '/rules?scope=project:nowhere', { method: 'PUT', body: { rules: [] } })
  expect(wrong.status).toBe(400)
  const bad = { rules: [{ action: 'deny', project: 'nowhere' }] }
  const invalid = await ask(gateway, '/rules', { method: 'PUT', body: bad })
  expect(invalid.body.error).toMatchObject({
    code: 'config-invalid',
    message: expect.stringContaining('rules.0.project'),
  })
})

it('lets the owners of a project set its rules, and no member any other', async () => {
  const { gateway } = await start({ projects: { shop: { owners: ['kim'] } }, agents: { tester: { project: 'shop' } } })
  await using _ = gateway
  const kim: Principal = { kind: 'user', name: 'kim', role: 'member', person: true }
  const deny = [Rule.parse({ tools: 'files_read_thing', action: 'deny' })]
  const set = (by: Principal, scope: 'global' | `project:${string}` | `agent:${string}`) =>
    gateway.gateway.rules.set(by, scope, deny).then(
      () => 'set',
      (error) => error.code,
    )
  expect(await set(kim, 'global')).toBe('forbidden')
  expect(await set(kim, 'agent:tester')).toBe('forbidden')
  expect(await set({ ...kim, name: 'ada' }, 'project:shop')).toBe('forbidden')
  expect(await set({ ...kim, role: 'auditor' }, 'project:shop')).toBe('forbidden')
  expect(await set({ kind: 'agent', name: 'kim' }, 'project:shop')).toBe('forbidden')
  expect(await set(kim, 'project:shop')).toBe('set')
  expect(await call(gateway, 'files_read_thing')).toMatchObject({ error: { code: 'call-denied' } })
  expect(await call(gateway, 'files_read_thing', { as: 'outsider' })).toMatchObject({ kind: 'answered' })

  await gateway.gateway.rules.set({ ...kim, role: 'administrator' }, 'global', [])
  await gateway.gateway.rules.set(kim, 'project:shop', [Rule.parse({ action: 'allow' })])
  expect(await call(gateway, 'files_idempotent_thing')).toMatchObject({ kind: 'waiting' })
})

it("refuses an owner's rule that would let an agent approve its own calls, and a change that hands such a rule to owners", async () => {
  const { gateway } = await start({
    projects: { shop: { owners: ['kim'] }, bank: { rules: [{ action: 'ask', approvers: 'client' }] } },
  })
  await using _ = gateway
  const kim: Principal = { kind: 'user', name: 'kim', role: 'member', person: true }
  const atClient = [Rule.parse({ action: 'ask', approvers: 'client' })]
  for (const by of [kim, { ...kim, role: 'administrator' as const }]) {
    await expect(gateway.gateway.rules.set(by, 'project:shop', atClient)).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('client is only allowed in scopes of administrators'),
    })
  }
  const before = gateway.gateway.config.current()
  const config = JSON.parse(await readFile(gateway.configFile, 'utf8'))
  await gateway.writeConfig({ ...config, projects: { bank: { owners: ['kim'], rules: atClient } } })
  await gateway.gateway.config.reload()
  expect(gateway.gateway.config.rejected()[0]?.message).toContain('client is only allowed')
  expect(gateway.gateway.config.current()).toBe(before)
})

it('lists, tests and replays rules from the command line', async () => {
  await using gateway = await serve({ servers: { files: recording() }, rules })
  const { run, folder } = gateway
  await until(async () => ((await run('tools', 'list')).stdout.includes('files_read_thing') ? true : undefined))

  const listed = await run('rules', 'list')
  expect(listed).toMatchObject({ code: 0 })
  expect(listed.stdout).toContain('/path {"glob":"/etc/*"}')
  expect((await run('rules', 'list', '--agent', 'tester', '--json')).json()).toMatchObject({
    items: [{ scope: 'global', rules: [{ index: 0 }, { index: 1 }] }],
  })

  const tested = await run('rules', 'test', 'files_write_thing', '--agent', 'tester', '--arg', 'path=/etc/passwd')
  expect(tested.code).toBe(0)
  expect(tested.stdout).toMatch(/^answer {5}deny$/m)
  expect(tested.stdout).toContain('rule 2 "Not there" deny: decides')
  expect(tested.stdout).toContain('rule 3 deny: does not match: agent:tester does not match agent:other')
  const dangerous = await run('rules', 'test', 'shop_refund', '--risk', 'danger', '--server', 'shop', '--json')
  expect(dangerous.json()).toMatchObject({ known: false, action: 'ask', risk: 'danger', server: 'shop' })

  expect((await run('tools', 'call', 'files_write_thing', '--arg', 'path=/srv/a')).code).toBe(0)
  const file = join(folder, 'changed.yaml')
  await writeFile(file, 'rules:\n  - { risk: write, action: deny }\n')
  const replayed = await run('rules', 'test', '--replay', '--rules', file, '--since', '1h')
  expect(replayed.code).toBe(0)
  expect(replayed.stdout).toContain('1 of 1 past calls would be decided differently.\n  allow → deny: 1')

  await writeFile(file, 'rules:\n  - { risk: wirte, action: deny }\n')
  const broken = await run('rules', 'test', '--replay', '--rules', file)
  expect(broken.code).toBe(2)
  expect(broken.stderr).toContain('changed.yaml:2: rules.0.risk')
  expect((await run('rules', 'test')).code).toBe(2)
  expect((await run('rules', 'test', '--replay', '--since', 'soon')).code).toBe(2)
})

it('points out rules that have ended when the file is checked and when the doctor looks', async () => {
  await using folder = await createFolder()
  const file = await writeConfig(folder.path, { rules: [{ action: 'allow', expires: '2020-01-01T00:00:00Z' }] })
  const checked = await runCli(['config', 'check', file])
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('is valid') })
  expect(checked.stderr).toContain('rules.0.expires: has passed: this rule has expired')
  const { notices } = (await runCli(['config', 'check', file, '--json'])).json()
  expect(notices).toMatchObject([{ line: 3, key: 'rules.0.expires' }])
  const doctor = await runCli(['doctor', '--config', file, '--data', join(folder.path, 'data')])
  expect(doctor.stdout + doctor.stderr).toContain('this rule has expired')
})
