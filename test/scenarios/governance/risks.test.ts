import { readFile, writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { call, inlineServer, operator } from '../servers/support.ts'

const member: Principal = { kind: 'user', name: 'kim', role: 'member', person: true }

/** Most servers in use say nothing about their tools. */
const silent = inlineServer(`
  const plain = (name, description) => ({ name, description, inputSchema: { type: 'object' } })
  const tools = [
    plain('list_things', 'Lists things'), plain('create_thing', 'Creates a thing'),
    plain('delete_thing', 'Deletes a thing'), plain('think', 'Thinks'), tool('peek'),
  ]
  function handle({ id, method, params }) {
    if (method === 'initialize') say({ id, result: greeting })
    else if (method === 'tools/list') say({ id, result: { tools } })
    else if (id) say({ id, result: text(params?.name ?? '') })
  }
`)

it('suggests risks for tools without annotations, and changes none of them by itself', async () => {
  await using gateway = await startTestGateway({ servers: { silent } })
  const risks = gateway.gateway.servers.risks(operator, 'silent')
  expect(risks.map(({ tool, risk, suggested }) => [tool, risk, suggested?.risk])).toEqual([
    ['list_things', 'write', 'read'],
    ['create_thing', 'write', undefined],
    ['delete_thing', 'write', 'danger'],
    ['think', 'write', undefined],
    ['peek', 'read', undefined],
  ])
  expect(gateway.gateway.servers.get(undefined, 'silent').tools.map(({ risk }) => risk)).toEqual(
    risks.map(({ risk }) => risk),
  )
})

it('runs a reading call without approval once somebody has accepted its suggested risk, and records who did', async () => {
  await using gateway = await startTestGateway({ servers: { silent }, limits: { hold: 0 } })
  const client = await gateway.connectV1('tester')
  expect(await call(client, 'silent_list_things')).toMatchObject({ isError: true, code: 'approval-waiting' })
  await gateway.gateway.servers.setRisks(operator, {
    name: 'silent',
    risks: { list_things: 'read', delete_thing: 'danger' },
  })
  expect(await call(client, 'silent_list_things')).toMatchObject({ isError: false, text: 'list_things' })
  const tools = gateway.gateway.servers.get(undefined, 'silent').tools
  expect(tools.find(({ original }) => original === 'delete_thing')).toMatchObject({
    risk: 'danger',
    riskFrom: 'override',
  })
  const { items } = await gateway.gateway.audit.list({ limit: 10, kind: 'change', subject: 'server:silent' })
  expect(items[0]).toMatchObject({
    principal: 'user:admin-token',
    body: { change: 'risks-set', scope: 'global', risks: { list_things: 'read', delete_thing: 'danger' } },
  })
})

it('writes only the risks into the file, beside what the entry says already', async () => {
  const entry = { ...silent, tools: { exclude: ['think'], override: { list_things: { name: 'things' } } } }
  await using gateway = await startTestGateway({ servers: { silent: entry } })
  const before = JSON.parse(await readFile(gateway.configFile, 'utf8'))
  await gateway.gateway.servers.setRisks(operator, { name: 'silent', risks: { list_things: 'read' } })
  before.servers.silent.tools.override.list_things.risk = 'read'
  expect(JSON.parse(await readFile(gateway.configFile, 'utf8'))).toEqual(before)
  await writeFile(gateway.configFile, JSON.stringify(before))
})

it('lets nobody but administrators lower a risk, and names tools that are not there', async () => {
  await using gateway = await startTestGateway({ servers: { silent } })
  const lower = (by: Principal, scope: 'global' | `user:${string}`) =>
    gateway.gateway.servers.setRisks(by, { name: 'silent', risks: { list_things: 'read' }, scope })
  await expect(lower(member, 'global')).rejects.toMatchObject({ code: 'forbidden' })
  await expect(lower(member, 'user:kim')).rejects.toMatchObject({ code: 'forbidden' })
  await expect(
    gateway.gateway.servers.setRisks(operator, { name: 'silent', risks: { no_such: 'read' } }),
  ).rejects.toMatchObject({ code: 'request-invalid', message: 'silent has no tool named no_such' })
  expect(gateway.gateway.servers.get(undefined, 'silent').tools[0]).toMatchObject({
    original: 'list_things',
    risk: 'write',
  })
})
