import { expect, it } from 'vitest'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { call, recordingServer } from './support.ts'

type Rules = NonNullable<ConfigInput['rules']>

async function start(rules: Rules, more: Partial<ConfigInput> = {}) {
  const recording = recordingServer()
  const config = { servers: { files: recording.server }, ...more }
  const gateway = await startTestGateway({ ...config, rules })
  return {
    ...recording,
    gateway,
    apply: (changed: Partial<ConfigInput>) => gateway.writeConfig({ ...config, rules, ...changed }),
  }
}

function answerTo(gateway: TestGateway, tool: string, as = 'tester'): Promise<string> {
  return call(gateway, tool, { as }).then((outcome) => (outcome.kind === 'refused' ? outcome.error.code : outcome.kind))
}

it('runs reads and asks for everything else where no rule speaks', async () => {
  const { gateway, received } = await start([])
  await using _ = gateway
  expect(await answerTo(gateway, 'files_read_thing')).toBe('answered')
  for (const tool of ['write_thing', 'destroy_thing', 'both_thing', 'plain_thing', 'delete_everything']) {
    expect(await answerTo(gateway, `files_${tool}`)).toBe('waiting')
  }
  expect(await received()).toEqual(['read_thing'])
})

it('lets a call that must ask wait, records the approval, and runs the call once a rule allows it', async () => {
  const { gateway, received, apply } = await start([{ tools: '*', risk: 'write', action: 'ask', name: 'Look first' }])
  await using _ = gateway
  const waiting = await call(gateway, 'files_write_thing', { given: { n: 1 } })
  if (waiting.kind !== 'waiting') throw new Error('It ran')
  expect(waiting.approval).toMatchObject({
    state: 'waiting',
    tool: 'files_write_thing',
    reason: 'rule 1 of global "Look first" requires approval',
    approvers: ['any'],
    arguments: { n: 1 },
  })
  expect(await received()).toEqual([])
  expect(await gateway.gateway.calls.find(waiting.call.id)).toMatchObject({
    state: 'waiting',
    decision: 'rule 1 of global "Look first" requires approval',
    arguments: { n: 1 },
  })
  const { items } = await gateway.gateway.audit.list({ limit: 10, call: waiting.call.id })
  expect(items).toMatchObject([
    { kind: 'approval', subject: 'files_write_thing', body: { approval: waiting.approval.id, arguments: { n: 1 } } },
  ])

  await apply({
    rules: [
      { tools: '*', risk: 'write', action: 'ask' },
      { tools: 'files_write_thing', action: 'allow' },
    ],
  })
  await poll(async () => (await answerTo(gateway, 'files_write_thing')) === 'answered' || undefined)
  expect(await answerTo(gateway, 'files_plain_thing')).toBe('waiting')
  expect(new Set(await received())).toEqual(new Set(['write_thing']))
})

it('denies what a rule denies, reads included, and nothing reaches the server', async () => {
  const { gateway, received } = await start([
    { action: 'allow' },
    { tools: ['*_read_*', '*_destroy_*'], action: 'deny', reason: 'by hand' },
  ])
  await using _ = gateway
  const denied = await call(gateway, 'files_read_thing')
  expect(denied).toMatchObject({
    kind: 'refused',
    error: {
      code: 'call-denied',
      message: 'files_read_thing was denied: rule 2 of global "*_read_*, *_destroy_*" denies (by hand)',
    },
    call: { state: 'denied' },
  })
  expect(await answerTo(gateway, 'files_destroy_thing')).toBe('call-denied')
  expect(await answerTo(gateway, 'files_write_thing')).toBe('answered')
  expect(await received()).toEqual(['write_thing'])
})

it('denies at every address alike, under whatever name the tool is called there', async () => {
  const { gateway, received } = await start([{ tools: 'files_read_thing', action: 'deny' }], {
    toolsets: { all: {} },
  })
  await using _ = gateway
  const addresses = [
    call(gateway, 'read_thing', { selector: { kind: 'server', name: 'files' } }),
    call(gateway, 'files_read_thing', { selector: { kind: 'toolset', name: 'all' } }),
  ]
  for (const outcome of await Promise.all(addresses)) expect(outcome).toMatchObject({ error: { code: 'call-denied' } })
  expect(await received()).toEqual([])
})

it('follows rules for principals and for servers', async () => {
  const files = recordingServer()
  const other = recordingServer()
  await using gateway = await startTestGateway({
    servers: { files: files.server, other: other.server },
    rules: [
      { principal: 'agent:writer', risk: 'write', action: 'allow' },
      { server: 'other', action: 'deny' },
    ],
  })
  expect(await answerTo(gateway, 'files_write_thing', 'writer')).toBe('answered')
  expect(await answerTo(gateway, 'files_write_thing', 'writer2')).toBe('waiting')
  expect(await answerTo(gateway, 'files_destroy_thing', 'writer')).toBe('waiting')
  expect(await answerTo(gateway, 'other_read_thing', 'writer')).toBe('call-denied')
  expect(await answerTo(gateway, 'files_read_thing', 'reader')).toBe('answered')
  expect(await files.received()).toEqual(['write_thing', 'read_thing'])
  expect(await other.received()).toEqual([])
})

it('lets an agent tighten what holds for everyone, and never loosen it', async () => {
  const { gateway, received } = await start([{ tools: 'files_write_thing', action: 'deny' }], {
    agents: {
      tight: { rules: [{ tools: 'files_read_thing', action: 'deny' }] },
      loose: { rules: [{ action: 'allow' }] },
    },
  })
  await using _ = gateway
  expect(await answerTo(gateway, 'files_read_thing', 'tight')).toBe('call-denied')
  expect(await answerTo(gateway, 'files_read_thing', 'anybody')).toBe('answered')
  expect(await answerTo(gateway, 'files_write_thing', 'loose')).toBe('call-denied')
  expect(await answerTo(gateway, 'files_plain_thing', 'loose')).toBe('answered')
  expect(await received()).toEqual(['read_thing', 'plain_thing'])
})
