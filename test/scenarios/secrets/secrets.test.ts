import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { EventTable } from '../../../src/contract/events.ts'
import { collect, createFolder, recording, runCli, serve, startCli, until, writeConfig } from '../../cli/support.ts'
import { startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { addPerson, firstAdministrator } from '../../support/people.ts'

const value = 'tok-0123456789abcdef'
const other = 'tok-another-9876543210'
const allow = [{ tools: '*', action: 'allow' as const }]

async function ask(gateway: TestGateway, method: string, path: string, body?: unknown): Promise<Response> {
  const token = (await readFile(join(gateway.folder, 'data', 'admin-token'), 'utf8')).trim()
  return fetch(`${gateway.url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

const set = (gateway: TestGateway, name: string, body: object) => ask(gateway, 'PUT', `/secrets/${name}`, body)

describe('a secret', () => {
  it('connects the server that was missing it, again when it changes, and not without it', async () => {
    await using server = await startHttpFixture('recording', ['--http', '--require-token', other])
    const config = {
      servers: { docs: { transport: 'http' as const, url: server.url, headers: { Authorization: 'Bearer ${DOCS}' } } },
    }
    await using gateway = await startTestGateway(config)
    expect((await gateway.reach('docs', 'failed')).error).toMatchObject({ code: 'variable-missing' })
    await set(gateway, 'DOCS', { value })
    await gateway.reach('docs', 'auth-required')
    await set(gateway, 'DOCS', { value: other })
    await gateway.reach('docs', 'connected')
    await ask(gateway, 'DELETE', '/secrets/DOCS')
    expect((await gateway.reach('docs', 'failed')).error?.message).toBe('A variable is missing: DOCS')
  })

  it('is given back by no address: lists and changes say everything about it but the value', async () => {
    await using gateway = await startTestGateway({})
    const answers = [
      await (await set(gateway, 'DOCS', { value, hosts: ['API.example.com'], servers: ['docs'] })).text(),
      await (await ask(gateway, 'GET', '/secrets')).text(),
      await (await ask(gateway, 'GET', '/secrets/DOCS')).text(),
      await (await ask(gateway, 'GET', '/audit?limit=100')).text(),
      await (await ask(gateway, 'DELETE', '/secrets/DOCS')).text(),
    ]
    expect(answers.join('\n')).not.toContain(value)
    expect(JSON.parse(answers[0] ?? '')).toMatchObject({
      name: 'DOCS',
      scope: 'global',
      hosts: ['api.example.com'],
      servers: ['docs'],
      masked: true,
      createdBy: 'user:admin-token',
    })
    expect((await ask(gateway, 'DELETE', '/secrets/DOCS')).status).toBe(404)
  })

  it.each(['SALLYPORT_KEY', 'sallyport_x', '1ST', 'A-B', 'A B'])('cannot be named %s', async (name) => {
    await using gateway = await startTestGateway({})
    expect((await set(gateway, encodeURIComponent(name), { value })).status).toBe(400)
  })

  it('is not for agents: neither to look at nor to set', async () => {
    await using gateway = await startTestGateway({})
    for (const [method, path] of [
      ['GET', '/api/secrets'],
      ['PUT', '/api/secrets/A'],
      ['DELETE', '/api/secrets/A'],
      ['POST', '/api/secrets/rotate-key'],
    ] as const) {
      const body =
        method === 'PUT' ? { body: JSON.stringify({ value }), headers: { 'content-type': 'application/json' } } : {}
      expect((await gateway.fetch('tester', path, { method, ...body })).status).toBe(403)
    }
  })

  it('goes to a program in its environment, comes back hidden, and the call says so', async () => {
    const env = { API_TOKEN: '${API}' }
    await using gateway = await startTestGateway({
      servers: { tool: { ...stdioFixture('recording'), env } },
      rules: allow,
    })
    const found: EventTable['secret-found'][] = []
    gateway.gateway.events.on('secret-found', (event) => void found.push(event))
    await set(gateway, 'API', { value })
    await gateway.reach('tool', 'connected')
    const answer = await gateway.fetch('tester', '/api/tools/tool_environment/call', {
      method: 'POST',
      body: '{"arguments":{}}',
      headers: { 'content-type': 'application/json' },
    })
    const { call, result } = JSON.parse(await answer.text())
    expect(JSON.parse(result.content[0].text).env.API_TOKEN).toBe('[secret]')
    expect(call.masked).toBe(1)
    expect(found).toEqual([{ server: 'tool', found: 1, call: call.id }])
    const recorded = await poll(async () => (await gateway.gateway.calls.find(call.id)) ?? undefined)
    expect(recorded).toMatchObject({ masked: 1, state: 'ok' })
  })

  it('that an agent pastes reaches the server as it is, and stands masked in the record', async () => {
    const env = { API_TOKEN: '${API}' }
    await using folder = await createFolder()
    const record = join(folder.path, 'record.jsonl')
    const server = { ...stdioFixture('recording', ['--record', record]), env }
    await using gateway = await startTestGateway({ servers: { tool: server }, rules: allow })
    await set(gateway, 'API', { value })
    await gateway.reach('tool', 'connected')
    const answer = await gateway.fetch('tester', '/api/tools/tool_write_thing/call', {
      method: 'POST',
      body: JSON.stringify({ arguments: { text: `it is ${value}` } }),
      headers: { 'content-type': 'application/json' },
    })
    const { call } = JSON.parse(await answer.text())
    expect(await readFile(record, 'utf8')).toContain(value)
    const audit = await (await ask(gateway, 'GET', `/audit/${call.id}`)).text()
    expect(audit).not.toContain(value)
    expect(audit).toContain('it is [secret]')
  })
})

describe('a member', () => {
  it('who names a global secret, or leads an inherited header elsewhere, gets nothing', async () => {
    await using listener = await startHttpFixture('recording', ['--http'])
    const docs = {
      transport: 'http' as const,
      url: 'https://docs.example/mcp',
      headers: { Authorization: 'Bearer ${DOCS}' },
    }
    const mine = { transport: 'http' as const, url: listener.url, headers: { Authorization: 'Bearer ${DOCS}' } }
    const config = {
      egress: { allow: ['127.0.0.1'] },
      servers: { docs: { ...docs, enabled: false } },
      users: { alice: { servers: { mine, docs: { url: listener.url, transport: 'http' as const, enabled: true } } } },
    }
    await using gateway = await startTestGateway(config)
    await set(gateway, 'DOCS', { value })
    const servers = () => gateway.gateway.servers.list().filter(({ scope }) => scope === 'user:alice')
    await poll(() => (servers().length === 2 && servers().every(({ state }) => state !== 'connecting')) || undefined)
    const found = new Map(servers().map((server) => [server.name, server]))
    expect(found.get('mine')?.error).toMatchObject({ code: 'variable-missing' })
    expect(found.get('docs')?.state).toBe('connected')
    await addPerson(gateway, await firstAdministrator(gateway), 'alice', 'member')
    const alice = { kind: 'user', name: 'alice', role: 'member' } as const
    const detail = gateway.gateway.servers.get(alice, 'docs', 'user:alice')
    expect(JSON.stringify(detail.definition)).not.toContain('DOCS')
    // Her own secret of that name is hers to use.
    await gateway.gateway.secrets.set(alice, { scope: 'user:alice', name: 'DOCS', value: other })
    await poll(() => servers().find(({ name, state }) => name === 'mine' && state === 'connected'))
  })
})

describe('a gateway', () => {
  it('refuses to start with another key, and says what to do', async () => {
    await using folder = await createFolder()
    const file = await writeConfig(folder.path, {})
    const data = join(folder.path, 'data')
    const args = ['serve', '--config', file, '--data', data, '--port', '0']
    const first = startCli(args)
    const stdout = collect(first, 'stdout')
    await until(() => stdout().includes('sallyport ready') || undefined)
    first.kill('SIGTERM')
    await until(() => first.exitCode ?? undefined)
    const ended = await runCli(args, { env: { SALLYPORT_KEY: Buffer.alloc(32, 1).toString('base64') } })
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('is not the key that encrypts the secrets in this database')
    expect(ended.stderr).toContain('Start the gateway with the key that encrypted this data')
    const invalid = await runCli(args, { env: { SALLYPORT_KEY: 'hunter2' } })
    expect(invalid.code).toBe(2)
    expect(invalid.stderr).not.toContain('hunter2')
  })
})

describe('sallyport secrets', () => {
  it('takes a value from standard input only, lists it without, and rotates the key', async () => {
    await using gateway = await serve({ servers: { tool: { ...recording(), env: { A: '${API}' } } } })
    const command = (words: string[], input?: string) => runCli([...words, '--data', gateway.data], { input })
    expect(await command(['secrets', 'set', 'API', value])).toMatchObject({ code: 2 })
    expect(await command(['secrets', 'set', 'API'])).toMatchObject({ code: 2 })
    const saved = await command(['secrets', 'set', 'API', '--server', 'tool', '--json'], `${value}\n`)
    expect(saved.json()).toMatchObject({ name: 'API', servers: ['tool'], masked: true })
    const short = await command(['secrets', 'set', 'PIN'], '1234')
    expect(short.stderr).toContain('shorter than 8')
    const listed = await command(['secrets', 'list'])
    expect(listed.stdout).toMatch(/API .*global .*tool/)
    expect(listed.stdout + saved.stdout + saved.stderr).not.toContain(value)
    expect((await command(['secrets', 'rotate-key', '--json'])).json()).toEqual({ keyVersion: 2, secrets: 2 })
    expect(await command(['secrets', 'remove', 'PIN', '--json'])).toMatchObject({ code: 0 })
    expect(await command(['secrets', 'remove', 'PIN'])).toMatchObject({ code: 1 })
  })

  it('in arguments are pointed out by config check and doctor', async () => {
    const tool = { ...recording('${API}'), secretsInArguments: true }
    await using gateway = await serve({ servers: { tool } })
    const check = await gateway.run('config', 'check', join(gateway.folder, 'sallyport.yaml'))
    const doctor = await gateway.run('doctor')
    for (const { stdout, stderr } of [check, doctor]) expect(stdout + stderr).toContain('allows secrets in arguments')
  })
})
