import { describe, expect, it } from 'vitest'
import type { StoredPin } from '../../src/storage/tables/pins.ts'
import { databases, open, placeOn } from './support.ts'

const change = (what: string) => ({ principal: 'user:root', subject: 'server:files', body: { change: what } })

function pinOf(name: string, hash: string, more: Partial<StoredPin> = {}): StoredPin {
  return {
    server: 'files',
    scope: 'global',
    kind: 'tool',
    name,
    state: 'accepted',
    accepted: { hash, text: `{"name":"${name}","description":"\\u0000 ${hash}"}` },
    baseline: true,
    decidedBy: 'baseline',
    byAdministrator: false,
    decidedAt: 1_800_000_000_000,
    seen: undefined,
    ...more,
  }
}

const byName = (a: StoredPin, b: StoredPin) => (a.name < b.name ? -1 : 1)

describe.each(databases)('pins on %s', (kind) => {
  it('are there after a restart as they were, with the entries that tell of them', async () => {
    const place = await placeOn(kind)
    const first = await open(place)
    const pins = [pinOf('a', '1'), pinOf('b', '2', { state: 'waiting', accepted: undefined, baseline: false })]
    await first.pins.addBaseline(pins, change('baseline'))
    await first.close()
    const second = await open(place)
    expect((await second.pins.all()).sort(byName)).toEqual(pins)
    const { items } = await second.audit.list({ limit: 5, kind: 'change', subject: 'server:files' })
    expect(items.map(({ body }) => body)).toEqual([{ change: 'baseline' }])
  })

  it('of a first list stay what they are when another instance lists first', async () => {
    const storage = await open(await placeOn(kind))
    await storage.pins.addBaseline([pinOf('a', 'first')], change('baseline'))
    await storage.pins.addBaseline([pinOf('a', 'second'), pinOf('b', 'second')], change('baseline'))
    const hashes = (await storage.pins.all()).sort(byName).map(({ name, accepted }) => [name, accepted?.hash])
    expect(hashes).toEqual([
      ['a', 'first'],
      ['b', 'second'],
    ])
  })

  it('keep what was decided when something else is seen, and what is seen until it is decided on', async () => {
    const storage = await open(await placeOn(kind))
    const blocked = pinOf('a', '1', { state: 'blocked', decidedBy: 'user:root', baseline: false })
    await storage.pins.decide([blocked], [change('blocked')])
    const seen = { hash: '2', text: '{}', at: 1_800_000_000_001 }
    await storage.pins.note([pinOf('a', 'other', { seen })], change('differs'))
    expect(await storage.pins.all()).toEqual([{ ...blocked, seen }])
    const accepted = pinOf('a', '2', { baseline: false })
    await storage.pins.decide([accepted], [change('accepted')])
    expect(await storage.pins.all()).toEqual([accepted])
  })

  it('belong to a server in its scope, and go with it', async () => {
    const storage = await open(await placeOn(kind))
    const others = [pinOf('a', '1', { server: 'mail' }), pinOf('a', '2', { scope: 'agent:reviewer' })]
    await storage.pins.addBaseline(
      [pinOf('a', '3'), pinOf('a', '4', { kind: 'prompt' }), ...others],
      change('baseline'),
    )
    await storage.pins.forget('files', 'global', change('forgotten'))
    const left = (await storage.pins.all()).map(({ server, scope }) => `${server} ${scope}`)
    expect(left.sort()).toEqual(['files agent:reviewer', 'mail global'])
  })

  it('of ten thousand tools are one unit', async () => {
    const storage = await open(await placeOn(kind))
    const pins = Array.from({ length: 10_000 }, (_, index) => pinOf(`tool_${index}`, String(index)))
    await storage.pins.addBaseline(pins, change('baseline'))
    expect(await storage.pins.all()).toHaveLength(10_000)
  })
})
