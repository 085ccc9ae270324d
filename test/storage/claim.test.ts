import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { ResolvedCall } from '../../src/contract/permit.ts'
import {
  callOf,
  countCommits,
  databases,
  endOf,
  numbersUpTo,
  type Observer,
  observe,
  open,
  placeOn,
  sequencesIn,
} from './support.ts'

type Claim = (call: ResolvedCall) => Promise<unknown>

/** What somebody else finds in the database at the very moment at which a claim resolves: this is when a call is sent. */
async function findWhenClaimed(claim: Claim, observer: Observer, risk: ResolvedCall['risk']) {
  const call = callOf(risk)
  await claim(call)
  const [found] = await observer.all(
    `select (select state from calls where id = ?) as state,
      (select count(*) from audit where kind = 'intent' and call = ?) as intents`,
    call.id,
    call.id,
  )
  return found
}

describe.each(databases)('on %s', (kind) => {
  it.each(['write', 'danger'] as const)(
    'has the intent of a %s call on disk before the call may be sent',
    async (risk) => {
      const place = await placeOn(kind)
      const storage = await open(place)
      const observer = observe(place)
      for (let round = 0; round < 20; round++) {
        expect(await findWhenClaimed(storage.claim, observer, risk)).toEqual({ state: 'running', intents: 1 })
      }
    },
  )

  it('would notice a claim that does not wait for its commit', async () => {
    const place = await placeOn(kind)
    const storage = await open(place)
    const observer = observe(place)
    const hasty: Claim = async (call) => void storage.claim(call)
    const found: unknown[] = []
    for (let round = 0; round < 20; round++) found.push(await findWhenClaimed(hasty, observer, 'write'))
    expect(found).toContainEqual({ state: null, intents: 0 })
  })

  it('writes down who asked for what, by which decision, and how it ended', async () => {
    const place = await placeOn(kind)
    const storage = await open(place)
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
    const place = await placeOn(kind)
    const storage = await open(place)
    const observer = observe(place)
    const before = await countCommits(place)
    const permits = await Promise.all(Array.from({ length: 1000 }, () => storage.claim(callOf('write'))))
    expect((await countCommits(place)) - before).toBeLessThan(10)
    expect(new Set(permits.map(({ id }) => id)).size).toBe(1000)
    expect(await observer.all("select id from calls where state = 'running'")).toHaveLength(1000)
    expect(await sequencesIn(observer, storage.instance)).toEqual(numbersUpTo(1000))
  })

  it('refuses to claim the same call twice, and the calls beside it do not notice', async () => {
    const place = await placeOn(kind)
    const storage = await open(place)
    const call = callOf('write')
    const results = await Promise.allSettled([
      storage.claim(callOf('write')),
      storage.claim(call),
      storage.claim(call),
      storage.claim(callOf('write')),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    expect(await sequencesIn(observe(place), storage.instance)).toEqual([1, 2, 3])
  })

  it('gives a reading call its permit at once, and its row follows by itself', async () => {
    const place = await placeOn(kind)
    const storage = await open(place)
    const observer = observe(place)
    // A machine under load may be slower to look than the row is to follow, but not every time.
    for (let round = 0; round < 20; round++) {
      const early = callOf('read')
      await storage.claim(early)
      if ((await observer.state(early.id)) === undefined) break
      expect(round).toBeLessThan(19)
    }
    const call = callOf('read')
    const permit = await storage.claim(call)
    await vi.waitFor(async () => expect(await observer.state(call.id)).toBe('running'), {
      timeout: 10_000,
      interval: 5,
    })
    storage.finish(permit, endOf('ok'))
    await vi.waitFor(async () => expect(await observer.state(call.id)).toBe('ok'), { timeout: 10_000, interval: 5 })
    const kinds = await observer.all('select kind from audit where call = ? order by sequence', call.id)
    expect(kinds).toEqual([{ kind: 'intent' }, { kind: 'outcome' }])
  })

  it('writes reading calls that end quickly once, in their end state, all in one commit', async () => {
    const place = await placeOn(kind)
    const storage = await open(place)
    const observer = observe(place)
    const before = await countCommits(place)
    for (let count = 0; count < 100; count++) storage.finish(await storage.claim(callOf('read')), endOf('ok'))
    await vi.waitFor(async () => expect(await observer.all('select id from calls')).toHaveLength(100), {
      timeout: 10_000,
      interval: 5,
    })
    expect((await countCommits(place)) - before).toBe(1)
    expect(await observer.all('select distinct state from calls')).toEqual([{ state: 'ok' }])
    expect(await sequencesIn(observer, storage.instance)).toEqual(numbersUpTo(200))
  })

  it('shows reading calls to whoever asks, before their shared commit was due', async () => {
    const storage = await open(await placeOn(kind))
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
    const place = await placeOn(kind)
    const storage = await open(place)
    const permit = await storage.claim(callOf(risk))
    await wait(pause)
    storage.finish(permit, endOf('timeout'))
    storage.finish(permit, endOf('ok'))
    await storage.flush()
    storage.finish(permit, endOf('failed'))
    await storage.flush()
    const observer = observe(place)
    expect(await observer.state(permit.id)).toBe('timeout')
    expect(await observer.all("select call from audit where kind = 'outcome'")).toHaveLength(1)
    expect(await sequencesIn(observer, storage.instance)).toEqual([1, 2])
  })

  it.each(['write', 'read'] as const)('marks a %s call whose server answered after its end', async (risk) => {
    const storage = await open(await placeOn(kind))
    const permit = await storage.claim(callOf(risk))
    storage.finish(permit, endOf('timeout', { resent: true }))
    storage.markLate(permit.id)
    expect(await storage.calls.find(permit.id)).toMatchObject({ state: 'timeout', late: true, resent: true })
  })

  it('records a refused call with one entry that says what was asked for and why not', async () => {
    const storage = await open(await placeOn(kind))
    const call = callOf('danger', { decision: 'rule 2 denies it' })
    await storage.refuse(
      call,
      endOf('denied', { error: { code: 'call-denied', message: 'No' }, resultBytes: undefined }),
    )
    expect(await storage.calls.find(call.id)).toMatchObject({ state: 'denied', error: { code: 'call-denied' } })
    const { items } = await storage.audit.list({ limit: 10, call: call.id })
    expect(items).toHaveLength(1)
    expect(items[0]).toMatchObject({
      kind: 'outcome',
      body: { state: 'denied', decision: 'rule 2 denies it', arguments: call.arguments },
    })
  })

  it('has written everything when flush resolves, and when close resolves', async () => {
    const place = await placeOn(kind)
    const storage = await open(place)
    const observer = observe(place)
    const finishSome = async (count: number) => {
      for (let done = 0; done < count; done++) {
        storage.finish(await storage.claim(callOf(done % 2 === 0 ? 'read' : 'write')), endOf('ok'))
      }
    }
    await finishSome(50)
    await storage.flush()
    expect(await observer.all("select id from calls where state = 'ok'")).toHaveLength(50)
    await finishSome(50)
    storage.memory.set('last', 'word')
    await storage.close()
    expect(await observer.all("select id from calls where state = 'ok'")).toHaveLength(100)
    expect(await observer.all("select count(*) as entries from audit where kind = 'outcome'")).toEqual([
      { entries: 100 },
    ])
    expect(await observer.all('select value from memory')).toEqual([{ value: 'word' }])
    expect(await observer.all('select id from instances where ended_at is not null')).toEqual([
      { id: storage.instance },
    ])
  })

  it('refuses calls after it was closed', async () => {
    const storage = await open(await placeOn(kind))
    await storage.close()
    expect(storage.healthy()).toBe(false)
    await expect(storage.claim(callOf('read'))).rejects.toMatchObject({ code: 'storage-unavailable' })
    await expect(storage.claim(callOf('write'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  })
})
