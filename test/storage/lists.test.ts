import { describe, expect, it } from 'vitest'
import { callOf, databases, endOf, open, placeOn } from './support.ts'

describe.each(databases)('on %s', (kind) => {
  it('visits every call exactly once, page by page, while others are added', async () => {
    const storage = await open(await placeOn(kind))
    // Many at the same moment: the time alone does not tell where a page ended.
    const before = Array.from({ length: 60 }, (_, index) =>
      callOf('write', { startedAt: 1000 + Math.floor(index / 20) }),
    )
    await Promise.all(before.map((call) => storage.claim(call)))
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await storage.calls.list({ limit: 7, cursor })
      seen.push(...page.items.map(({ id }) => id))
      cursor = page.next
      await storage.claim(callOf('write'))
      await storage.claim(callOf('read'))
    } while (cursor !== undefined)
    expect(seen).toHaveLength(60)
    expect(new Set(seen)).toEqual(new Set(before.map(({ id }) => id)))
  })

  it('visits every entry of the record exactly once, newest first, while others are added', async () => {
    const storage = await open(await placeOn(kind))
    const append = (subject: string) => storage.audit.append({ principal: 'user:a', subject, body: { by: 'hand' } })
    const before = Array.from({ length: 45 }, (_, index) => `thing-${index}`)
    for (const subject of before) await append(subject)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await storage.audit.list({ limit: 10, cursor })
      seen.push(...page.items.map(({ subject }) => subject))
      cursor = page.next
      await append('later')
    } while (cursor !== undefined)
    expect(seen).toEqual(before.toReversed())
  })

  it('finds calls and entries by what they are about', async () => {
    const storage = await open(await placeOn(kind))
    const mine = callOf('write', { principal: 'agent:mine', tool: 'mail_send', server: 'mail' })
    storage.finish(await storage.claim(mine), endOf('ok'))
    await storage.claim(callOf('write'))
    const callsBy = async (query: object) =>
      (await storage.calls.list({ limit: 5, ...query })).items.map(({ id }) => id)
    expect(await callsBy({ principal: 'agent:mine' })).toEqual([mine.id])
    expect(await callsBy({ tool: 'mail_send' })).toEqual([mine.id])
    expect(await callsBy({ server: 'mail' })).toEqual([mine.id])
    expect(await callsBy({ state: 'ok' })).toEqual([mine.id])
    expect(await callsBy({ state: 'ok', server: 'files' })).toEqual([])
    const kindsBy = async (query: object) =>
      (await storage.audit.list({ limit: 5, ...query })).items.map(({ kind }) => kind)
    expect(await kindsBy({ principal: 'agent:mine' })).toEqual(['outcome', 'intent'])
    expect(await kindsBy({ subject: 'mail_send', kind: 'outcome' })).toEqual(['outcome'])
    expect(await kindsBy({ call: mine.id })).toEqual(['outcome', 'intent'])
    expect(await storage.audit.find(storage.instance, 1)).toMatchObject({ kind: 'intent', sequence: 1, call: mine.id })
    expect(await storage.audit.find(storage.instance, 99)).toBeUndefined()
    expect(await storage.calls.find('call_nobody')).toBeUndefined()
  })

  it.each(['', 'rubbish', 'W10', 'bnVsbA'])('refuses a cursor that it did not give out: %j', async (cursor) => {
    const storage = await open(await placeOn(kind))
    await expect(storage.calls.list({ limit: 5, cursor })).rejects.toMatchObject({ code: 'request-invalid' })
    await expect(storage.audit.list({ limit: 5, cursor })).rejects.toMatchObject({ code: 'request-invalid' })
  })

  it('remembers small facts and forgets none at a restart', async () => {
    const place = await placeOn(kind)
    const first = await open(place)
    first.memory.set('protocol:files', 'old')
    first.memory.set('protocol:files', 'new')
    expect(await first.memory.get('protocol:files')).toBe('new')
    expect(await first.memory.get('protocol:mail')).toBeUndefined()
    await first.close()
    expect(await (await open(place)).memory.get('protocol:files')).toBe('new')
  })

  it('knows the child processes that a dead gateway left, and only those', async () => {
    const place = await placeOn(kind)
    const first = await open(place)
    await first.children.add({ pid: 11, startTime: '100', connection: 'files' })
    await first.children.add({ pid: 12, startTime: '200', connection: 'mail' })
    await first.children.add({ pid: 12, startTime: '300', connection: 'mail' })
    first.children.remove(11)
    expect(await first.children.ofDeadInstances()).toEqual([])
    await first.close()

    const second = await open(place)
    await second.children.add({ pid: 12, startTime: '900', connection: 'files' })
    const left = await second.children.ofDeadInstances()
    expect(left).toMatchObject([{ pid: 12, instance: first.instance, startTime: '300', connection: 'mail' }])
    await second.children.forget(left)
    expect(await second.children.ofDeadInstances()).toEqual([])
  })
})
