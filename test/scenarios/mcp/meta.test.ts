import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { readRecord } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { firstAdministrator } from '../../support/people.ts'
import { ask, envelope, metaKey, openSession, type Reply, recordingAt, temporaryFolder } from './raw.ts'
import { startStatelessRecorder } from './stateless-recorder.ts'

let gateway: TestGateway
let file: string
let ada: Principal

beforeAll(async () => {
  const folder = await temporaryFolder()
  const { file: record, server } = recordingAt(folder.path)
  file = record
  gateway = await startTestGateway({ servers: { rec: server }, limits: { hold: 1 } })
  const { name } = await firstAdministrator(gateway)
  ada = { kind: 'user', name, role: 'administrator', person: true }
  return () => folder[Symbol.asyncDispose]()
})
afterAll(() => gateway.close())

type Call = (given: Fields, meta: Fields) => Promise<Reply>

const eras: readonly [string, Call][] = [
  [
    'with a session',
    async (given, _meta) => {
      const session = await openSession(gateway)
      return session.request('tools/call', { name: 'rec_write_thing', arguments: given, _meta })
    },
  ],
  [
    'without a session',
    (given, meta) =>
      ask(gateway, 'tools/call', { name: 'rec_write_thing', arguments: given }, { meta: { ...envelope(), ...meta } }),
  ],
]

const waitingFor = async () => (await gateway.gateway.approvals.list(ada, { limit: 100, state: 'waiting' })).items
const sentWith = async (given: Fields) =>
  (await readRecord(file)).filter(({ arguments: args }) => args?.era === given.era).map(({ meta }) => meta ?? {})
const traceparent = (span: string) => `00-0af7651916cd43dd8448eb211c80319c-${span}-01`

describe.each(eras)('a caller %s', (era, call) => {
  it('that changes `_meta` after the approval asks again, and nothing is sent', async () => {
    const given = { era, case: 'changed' }
    await call(given, { 'example.com/tenant': 'staging' })
    const approval = (await waitingFor()).find(({ arguments: args }) => Object(args).case === 'changed')
    expect(approval?.meta).toEqual({ 'example.com/tenant': 'staging' })
    await gateway.gateway.approvals.answer(ada, approval?.id ?? '', { verdict: 'approve' })
    await call(given, { 'example.com/tenant': 'production' })
    await call(given, { 'example.com/tenant': 'staging', more: true })
    await call(given, {})
    expect(await sentWith(given)).toEqual([])
    const reply = await call(given, { 'example.com/tenant': 'staging', traceparent: traceparent('b7ad6b7169203331') })
    expect(reply.result.isError ?? false).toBe(false)
    const [meta] = await sentWith(given)
    expect(meta).toEqual({ 'example.com/tenant': 'staging', traceparent: traceparent('b7ad6b7169203331') })
  })

  it('that numbers its requests, as Claude Code and VS Code do, gets the call that was approved', async () => {
    const given = { era: `${era} numbered` }
    const numbered = (id: string) => ({
      'claudecode/toolUseId': id,
      'vscode.requestId': id,
      traceparent: traceparent(id.padStart(16, 'a')),
      baggage: `request=${id}`,
    })
    await call(given, numbered('1'))
    const [approval] = (await waitingFor()).filter(({ arguments: args }) => Object(args).era === given.era)
    expect(approval?.meta).toBeUndefined()
    await gateway.gateway.approvals.answer(ada, approval?.id ?? '', { verdict: 'approve' })
    await call(given, numbered('2'))
    const [meta] = await sentWith(given)
    expect(meta).toMatchObject({ traceparent: traceparent('2'.padStart(16, 'a')), baggage: 'request=2' })
    expect(Object.keys(meta ?? {}).filter((key) => /^(claudecode|vscode)/.test(key))).toEqual([])
  })
})

const declaring = (capabilities: Fields) => ({ ...envelope(), [metaKey('clientCapabilities')]: capabilities })
const tasks = { extensions: { [metaKey('tasks')]: {} } }

it('what a client declares beyond the protocol is bound, shown and recorded, since the server gets it with the call', async () => {
  await using server = await startStatelessRecorder()
  const servers = { web: { transport: 'http' as const, url: server.url } }
  await using test = await startTestGateway({ servers, limits: { hold: 1 } })
  await firstAdministrator(test)
  const { approvals } = test.gateway
  const call = (capabilities: Fields) =>
    ask(test, 'tools/call', { name: 'web_write', arguments: {} }, { meta: declaring(capabilities) })
  const waiting = async () => (await approvals.list(ada, { limit: 100, state: 'waiting' })).items

  await call({ elicitation: { form: {} }, sampling: {}, ...tasks })
  const [plain] = await waiting()
  expect(plain?.meta).toBeUndefined()
  await approvals.answer(ada, plain?.id ?? '', { verdict: 'approve' })
  const staging = { experimental: { 'example.com/tenant': { use: 'production' } } }
  await call({ sampling: { tools: { tenant: 'production' } } })
  await call({ ...tasks, ...staging })
  expect(server.heard('tools/call')).toEqual([])
  const shown = (await waiting()).map(({ meta }) => toFields(meta)[metaKey('clientCapabilities')])
  expect(shown).toEqual([staging, { sampling: { tools: { tenant: 'production' } } }])

  // The same agent in the older era: what it declared at `initialize` goes along with each call.
  const extensions = { 'example.com/tenant': { use: 'production' } }
  const session = await openSession(test, { capabilities: { extensions } })
  await session.call('web_write')
  expect(server.heard('tools/call')).toEqual([])
  await call({})
  expect(server.heard('tools/call')).toMatchObject([{ _meta: { [metaKey('clientCapabilities')]: {} } }])
})

it('what rules do not see of a request about a task is not sent', async () => {
  await using server = await startStatelessRecorder()
  const denied = { meta: { '/example.com~1tenant': 'production' }, action: 'deny' as const }
  const servers = { web: { transport: 'http' as const, url: server.url } }
  await using test = await startTestGateway({ servers, rules: [{ action: 'allow' }, denied] })
  const given = { name: 'web_write', arguments: { task: true } }
  const { result } = await ask(test, 'tools/call', given, { meta: declaring(tasks) })
  const { taskId } = result
  const asking = {
    meta: {
      ...declaring({ ...tasks, experimental: { tenant: 'production' } }),
      'example.com/tenant': 'production',
      traceparent: traceparent('b7ad6b7169203331'),
    },
    headers: { 'mcp-name': String(taskId) },
  }
  const inputResponses = { confirm: { action: 'accept' } }
  await ask(test, 'tasks/get', { taskId, tenant: 'production' }, asking)
  await ask(test, 'tasks/update', { taskId, tenant: 'production', inputResponses }, asking)
  const heard = [...server.heard('tasks/get'), ...server.heard('tasks/update')]
  expect(heard).toMatchObject([{ taskId }, { taskId, inputResponses }])
  expect(JSON.stringify(heard)).not.toContain('production')
  expect(heard.map(({ _meta }) => toFields(_meta).traceparent)).toEqual(heard.map(() => asking.meta.traceparent))
})

it('`_meta` of prompts, resources and completion is judged like that of tools, in both eras', async () => {
  await using server = await startStatelessRecorder()
  const denied = { meta: { '/example.com~1tenant': 'production' }, action: 'deny' as const }
  const servers = { web: { transport: 'http' as const, url: server.url } }
  await using test = await startTestGateway({ servers, rules: [{ action: 'allow' }, denied] })
  const session = await openSession(test)
  const tenant = { 'example.com/tenant': 'production' }
  const requests: [string, Fields, Record<string, string>?][] = [
    ['prompts/get', { name: 'web_summary' }],
    ['resources/read', { uri: 'note://one' }, { 'mcp-name': 'note://one' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'web_summary' }, argument: { name: 'a', value: 'b' } }],
  ]
  for (const [method, params, headers = {}] of requests) {
    const replies = [
      await ask(test, method, params, { meta: { ...envelope(), ...tenant }, headers }),
      await session.request(method, { ...params, _meta: tenant }),
    ]
    expect(replies.map(({ error }) => toFields(error.data).code)).toEqual(['call-denied', 'call-denied'])
    expect(server.heard(method)).toEqual([])
  }
})
