import { describe, expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { allowAll, recordedCalls, temporaryFolder, textOf } from '../mcp/raw.ts'
import { accept, endedCalls, heardBy, openClient, pidOf, startAsking } from './support.ts'

const methods = (messages: readonly unknown[]) => messages.map((message) => toFields(message).method)

describe('two callers at the same time on one connection over HTTP', () => {
  it('each get their own question, progress, log and answer, and nothing of the other', async () => {
    await using scene = await startAsking()
    const [ann, bob] = [await openClient(scene.gateway, 'ann'), await openClient(scene.gateway, 'bob')]
    const stepsOf = (name: string) => [
      { log: `log for ${name}`, level: 'info' },
      { progress: 1 },
      { ask: { message: `Question for ${name}` } },
      { ask: { message: `Second for ${name}` } },
    ]
    const [forAnn, forBob] = await Promise.all([
      ann.script(stepsOf('ann'), { progressToken: 'same' }),
      bob.script(stepsOf('bob'), { progressToken: 'same' }),
    ])
    const [first, second] = await Promise.all([forAnn.asked('Question for ann'), forBob.asked('Question for bob')])
    await bob.answer(second, accept({ name: 'Bob' }))
    await ann.answer(first, accept({ name: 'Ann' }))
    await ann.answer(await forAnn.asked('Second for ann'), accept({ again: 'Ann' }))
    await bob.answer(await forBob.asked('Second for bob'), accept({ again: 'Bob' }))
    expect(heardBy(await forAnn.result())).toEqual([accept({ name: 'Ann' }), accept({ again: 'Ann' })])
    expect(heardBy(await forBob.result())).toEqual([accept({ name: 'Bob' }), accept({ again: 'Bob' })])
    expect(JSON.stringify(forAnn.messages())).not.toMatch(/bob/i)
    expect(JSON.stringify(forBob.messages())).not.toMatch(/ann/i)
    for (const each of [forAnn, forBob]) {
      expect(methods(each.messages())).toEqual([
        'notifications/message',
        'notifications/progress',
        'elicitation/create',
        'elicitation/create',
        undefined,
      ])
    }
    const record = await scene.record()
    expect(record.filter(({ method }) => method === 'initialize').length).toBe(1)
    expect(record.filter(({ method }) => method === 'tools/call').length).toBe(2)
  })
})

describe('a server over stdio that asks while several calls share it', () => {
  it('is refused once, then has a process for every call, and is remembered after a restart', async () => {
    await using folder = await temporaryFolder()
    const servers = { asking: stdioFixture('asking') }
    const config = { rules: allowAll, servers }
    const pids: number[] = []
    {
      await using gateway = await startTestGateway(config, { folder: folder.path })
      await gateway.reach('asking', 'connected')
      const [ann, bob] = [await openClient(gateway, 'ann'), await openClient(gateway, 'bob')]
      const held = await ann.script([{ hold: true }])
      await underWay(gateway, 1)
      const refused = await bob.script([{ ask: { message: 'For bob?' } }])
      expect(heardBy(await refused.result())).toMatchObject([{ error: { code: -32603 } }])
      expect(held.messages()).toEqual([])
      expect(gateway.gateway.servers.list()[0]?.conversational).toBe(true)

      const [forAnn, forBob] = await Promise.all([
        ann.script([{ ask: { message: 'For ann?' } }], { id: 8 }),
        bob.script([{ ask: { message: 'For bob?' } }], { id: 8 }),
      ])
      const [toAnn, toBob] = await Promise.all([forAnn.asked('For ann?'), forBob.asked('For bob?')])
      await ann.answer(toAnn, accept({ name: 'Ann' }))
      await bob.answer(toBob, accept({ name: 'Bob' }))
      const results = [await forAnn.result(), await forBob.result()]
      expect(results.map(heardBy)).toEqual([[accept({ name: 'Ann' })], [accept({ name: 'Bob' })]])
      pids.push(...results.map((result) => Number(pidOf(result))))
      expect(new Set(pids).size).toBe(2)
      held.hangUp()
    }
    for (const pid of pids) expect(isAlive(pid)).toBe(false)

    await using gateway = await startTestGateway(config, { folder: folder.path })
    expect((await gateway.reach('asking', 'connected')).conversational).toBe(true)
    const [ann, bob] = [await openClient(gateway, 'ann'), await openClient(gateway, 'bob')]
    const [forAnn, forBob] = await Promise.all([
      ann.script([{ ask: { message: 'For ann?' } }]),
      bob.script([{ ask: { message: 'For bob?' } }]),
    ])
    await ann.answer(await forAnn.asked(), accept({ name: 'Ann' }))
    await bob.answer(await forBob.asked(), accept({ name: 'Bob' }))
    expect([await forAnn.result(), await forBob.result()].map(heardBy)).toEqual([
      [accept({ name: 'Ann' })],
      [accept({ name: 'Bob' })],
    ])
  })

  it('does not take other callers along when one of its processes ends', async () => {
    await using scene = await startAsking({ over: 'stdio' })
    const { gateway } = scene
    const [ann, bob] = [await openClient(gateway, 'ann'), await openClient(gateway, 'bob')]
    await ann.script([{ hold: true }], { id: 1 })
    await scene.reached(({ method }) => method === 'tools/call')
    await (await bob.script([{ ask: { message: 'Unclear?' } }])).result()
    await ann.post({ method: 'notifications/cancelled', params: { requestId: 1 } })
    await endedCalls(gateway, 2)

    const broken = await bob.script([{ ask: { message: 'Ready?' } }, { exit: 1 }])
    const ready = await broken.asked('Ready?')
    const talk = await ann.script([{ ask: { message: 'Who?' } }])
    const asked = await talk.asked('Who?')
    const before = gateway.gateway.servers.list()[0]?.since
    await bob.answer(ready, accept({}))
    expect(textOf(await broken.result())).toContain('call-unknown')
    await poll(() => gateway.gateway.servers.list()[0]?.since !== before || undefined)
    await gateway.reach('asking', 'connected')
    await ann.answer(asked, accept({ name: 'Ann' }))
    expect(heardBy(await talk.result())).toEqual([accept({ name: 'Ann' })])
  })

  it('has at most sixteen processes; a call that is cancelled while it waits for one is never sent', async () => {
    await using scene = await startAsking({ over: 'stdio', server: { timeout: { call: 60_000 } } })
    const client = await openClient(scene.gateway)
    const talks = [await client.script([{ hold: true }], { id: 1 })]
    await scene.reached(({ method }) => method === 'tools/call')
    await (await client.script([{ ask: { message: '?' } }], { id: 2 })).result()
    for (let id = 3; id <= 17; id++) talks.push(await client.script([{ ask: { message: `${id}?` } }], { id }))
    await Promise.all(talks.slice(1).map((talk) => talk.asked()))
    const waiting = await client.script([{ ask: { message: 'waiting?' } }], { id: 18 })
    const cancelled = await client.script([{ ask: { message: 'cancelled?' } }], { id: 19 })
    await underWay(scene.gateway, 19)
    await client.post({ method: 'notifications/cancelled', params: { requestId: 19 } })
    await poll(async () => (await recordedCalls(scene.gateway)).find(({ state }) => state === 'cancelled'))
    const pids = new Set((await scene.record()).map(({ pid }) => pid))
    expect(pids.size).toBe(16)
    expect(waiting.messages()).toEqual([])
    await client.answer(await (talks[5] ?? waiting).asked(), accept({}))
    await client.answer(await waiting.asked('waiting?'), accept({ late: true }))
    expect(heardBy(await waiting.result())).toEqual([accept({ late: true })])
    expect(JSON.stringify(await scene.record())).not.toContain('cancelled?')
    cancelled.hangUp()
    await client.end()
    const states = (await endedCalls(scene.gateway, 19)).map(({ state }) => state)
    expect(states.filter((state) => state === 'unknown' || state === 'running')).toEqual([])
  })
})

/** So many calls have been claimed, wherever they are now. */
function underWay(gateway: TestGateway, count: number): Promise<true> {
  return poll(async () => (await recordedCalls(gateway)).length >= count || undefined)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
