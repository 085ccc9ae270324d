import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { readRecord } from '../../fixtures/fixtures.ts'
import type { Fields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { firstAdministrator } from '../../support/people.ts'
import { ask, envelope, openSession, type Reply, recordingAt, temporaryFolder } from './raw.ts'

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
    const question = (await waitingFor()).find(({ arguments: args }) => Object(args).case === 'changed')
    expect(question?.meta).toEqual({ 'example.com/tenant': 'staging' })
    await gateway.gateway.approvals.answer(ada, question?.id ?? '', { verdict: 'approve' })
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
    const [question] = (await waitingFor()).filter(({ arguments: args }) => Object(args).era === given.era)
    expect(question?.meta).toBeUndefined()
    await gateway.gateway.approvals.answer(ada, question?.id ?? '', { verdict: 'approve' })
    await call(given, numbered('2'))
    const [meta] = await sentWith(given)
    expect(meta).toMatchObject({ traceparent: traceparent('2'.padStart(16, 'a')), baggage: 'request=2' })
    expect(Object.keys(meta ?? {}).filter((key) => /^(claudecode|vscode)/.test(key))).toEqual([])
  })
})
