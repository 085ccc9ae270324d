import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import type { ResolvedCall } from '../../src/contract/permit.ts'
import {
  callOf,
  countCommits,
  endOf,
  numbersUpTo,
  open,
  type Reader,
  readerOf,
  sequencesOf,
  temporaryFolder,
} from './support.ts'

type Claim = (call: ResolvedCall) => Promise<unknown>

/** What somebody else finds in the file at the very moment at which a claim resolves: this is when a call is sent. */
async function findWhenClaimed(claim: Claim, reader: Reader, risk: ResolvedCall['risk']) {
  const call = callOf(risk)
  await claim(call)
  const intents = reader.all("select body from audit where kind = 'intent' and call = ?", call.id)
  return { state: reader.state(call.id), intents: intents.length }
}

it.each(['write', 'danger'] as const)(
  'has the intent of a %s call on disk before the call may be sent',
  async (risk) => {
    const folder = temporaryFolder()
    const storage = await open(folder)
    const reader = readerOf(folder)
    for (let round = 0; round < 20; round++) {
      expect(await findWhenClaimed(storage.claim, reader, risk)).toEqual({ state: 'running', intents: 1 })
    }
  },
)

it('would notice a claim that does not wait for its commit', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const hasty: Claim = async (call) => void storage.claim(call)
  expect(await findWhenClaimed(hasty, readerOf(folder), 'write')).toEqual({ state: undefined, intents: 0 })
})

it('writes down who asked for what, by which decision, and how it ended', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const call = callOf('write')
  const permit = await storage.claim(call)
  storage.finish(permit, endOf('tool-error', { error: { code: 'server-refused', message: 'No such file' } }))

  const { items } = await storage.audit.list({ limit: 10, call: call.id })
  expect(items.map(({ kind, principal, subject, body }) => ({ kind, principal, subject, body }))).toEqual([
    {
      kind: 'outcome',
      principal: 'agent:reviewer',
      subject: 'files_change',
      body: {
        state: 'tool-error',
        error: { code: 'server-refused', message: 'No such file' },
        durationMs: 3,
        resultBytes: 12,
      },
    },
    {
      kind: 'intent',
      principal: 'agent:reviewer',
      subject: 'files_change',
      body: {
        tool: 'files_change',
        original: 'change',
        server: 'files',
        scope: 'global',
        connection: 'connection-1',
        arguments: { path: '/srv/docs/a.txt' },
        risk: 'write',
        decision: 'rule 1 allows it',
        surface: 'mcp',
      },
    },
  ])
  expect(await storage.calls.find(call.id)).toMatchObject({
    id: call.id,
    state: 'tool-error',
    error: { code: 'server-refused', message: 'No such file' },
    arguments: { path: '/srv/docs/a.txt' },
    instance: storage.instance,
    durationMs: 3,
  })
})

it('lets a thousand claims share a few commits and loses none of them', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const reader = readerOf(folder)
  const before = countCommits(folder)
  const permits = await Promise.all(Array.from({ length: 1000 }, () => storage.claim(callOf('write'))))
  expect(countCommits(folder) - before).toBeLessThan(10)
  expect(new Set(permits.map(({ id }) => id)).size).toBe(1000)
  expect(reader.all("select id from calls where state = 'running'")).toHaveLength(1000)
  expect(sequencesOf(reader, storage.instance)).toEqual(numbersUpTo(1000))
})

it('refuses to claim the same call twice, and the calls beside it do not notice', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const call = callOf('write')
  const results = await Promise.allSettled([
    storage.claim(callOf('write')),
    storage.claim(call),
    storage.claim(call),
    storage.claim(callOf('write')),
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(sequencesOf(readerOf(folder), storage.instance)).toEqual([1, 2, 3])
})

it('gives a reading call its permit at once, and its row follows by itself', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const reader = readerOf(folder)
  const call = callOf('read')
  const permit = await storage.claim(call)
  expect(reader.state(call.id)).toBeUndefined()
  await vi.waitFor(() => expect(reader.state(call.id)).toBe('running'), { timeout: 10_000, interval: 5 })
  storage.finish(permit, endOf('ok'))
  await vi.waitFor(() => expect(reader.state(call.id)).toBe('ok'), { timeout: 10_000, interval: 5 })
  const kinds = reader.all('select kind from audit where call = ? order by sequence', call.id)
  expect(kinds).toEqual([{ kind: 'intent' }, { kind: 'outcome' }])
})

it('writes reading calls that end quickly once, in their end state, all in one commit', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const reader = readerOf(folder)
  const before = countCommits(folder)
  for (let count = 0; count < 100; count++) storage.finish(await storage.claim(callOf('read')), endOf('ok'))
  await vi.waitFor(() => expect(reader.all('select id from calls')).toHaveLength(100), { timeout: 10_000, interval: 5 })
  expect(countCommits(folder) - before).toBe(1)
  expect(reader.all('select distinct state from calls')).toEqual([{ state: 'ok' }])
  expect(sequencesOf(reader, storage.instance)).toEqual(numbersUpTo(200))
})

it('shows reading calls to whoever asks, before their shared commit was due', async () => {
  const storage = await open(temporaryFolder())
  const call = callOf('read')
  await storage.claim(call)
  expect(await storage.calls.find(call.id)).toMatchObject({ state: 'running' })
  storage.finish(call, endOf('ok'))
  expect((await storage.calls.list({ limit: 1 })).items).toMatchObject([{ id: call.id, state: 'ok' }])
})

it.each([
  ['a writing call', 'write', 0],
  ['a reading call that waits for its commit', 'read', 0],
  ['a reading call that was written while it ran', 'read', 200],
] as const)('keeps the first end of %s, whatever comes after it', async (_, risk, pause) => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const permit = await storage.claim(callOf(risk))
  await wait(pause)
  storage.finish(permit, endOf('timeout'))
  storage.finish(permit, endOf('ok'))
  await storage.flush()
  storage.finish(permit, endOf('failed'))
  await storage.flush()
  const reader = readerOf(folder)
  expect(reader.state(permit.id)).toBe('timeout')
  expect(reader.all("select call from audit where kind = 'outcome'")).toHaveLength(1)
  expect(sequencesOf(reader, storage.instance)).toEqual([1, 2])
})

it.each(['write', 'read'] as const)('marks a %s call whose server answered after its end', async (risk) => {
  const storage = await open(temporaryFolder())
  const permit = await storage.claim(callOf(risk))
  storage.finish(permit, endOf('timeout', { resent: true }))
  storage.markLate(permit.id)
  expect(await storage.calls.find(permit.id)).toMatchObject({ state: 'timeout', late: true, resent: true })
})

it('records a refused call with one entry that says what was asked for and why not', async () => {
  const storage = await open(temporaryFolder())
  const call = callOf('danger', { decision: 'rule 2 denies it' })
  await storage.refuse(call, endOf('denied', { error: { code: 'call-denied', message: 'No' }, resultBytes: undefined }))
  expect(await storage.calls.find(call.id)).toMatchObject({ state: 'denied', error: { code: 'call-denied' } })
  const { items } = await storage.audit.list({ limit: 10, call: call.id })
  expect(items).toHaveLength(1)
  expect(items[0]).toMatchObject({
    kind: 'outcome',
    body: { state: 'denied', decision: 'rule 2 denies it', arguments: call.arguments },
  })
})

it('has written everything when flush resolves, and when close resolves', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const reader = readerOf(folder)
  const finishSome = async (count: number) => {
    for (let done = 0; done < count; done++) {
      storage.finish(await storage.claim(callOf(done % 2 === 0 ? 'read' : 'write')), endOf('ok'))
    }
  }
  await finishSome(50)
  await storage.flush()
  expect(reader.all("select id from calls where state = 'ok'")).toHaveLength(50)
  await finishSome(50)
  storage.memory.set('last', 'word')
  await storage.close()
  expect(reader.all("select id from calls where state = 'ok'")).toHaveLength(100)
  expect(reader.all("select count(*) as entries from audit where kind = 'outcome'")).toEqual([{ entries: 100 }])
  expect(reader.all('select value from memory')).toEqual([{ value: 'word' }])
  expect(reader.all('select id from instances where ended_at is not null')).toEqual([{ id: storage.instance }])
})

it('refuses calls after it was closed', async () => {
  const storage = await open(temporaryFolder())
  await storage.close()
  expect(storage.healthy()).toBe(false)
  await expect(storage.claim(callOf('read'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  await expect(storage.claim(callOf('write'))).rejects.toMatchObject({ code: 'storage-unavailable' })
})
