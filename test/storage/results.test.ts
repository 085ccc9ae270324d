import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Storage } from '../../src/storage/storage.ts'
import type { ResultBounds } from '../../src/storage/tables/results.ts'
import { callOf, type DatabaseKind, databases, jumpingClock, observe, open, placeOn } from './support.ts'

const keptMs = 600_000
const owner = 'agent:reader'

async function openOn(kind: DatabaseKind, resultBounds?: ResultBounds) {
  const place = await placeOn(kind)
  const clock = jumpingClock()
  const storage = await open(place, { clock, ...(resultBounds && { resultBounds }) })
  const observer = observe(place)
  /** How many results there are, and how many parts of them. */
  const count = async () => {
    const [row] = await observer.all(
      'select (select count(*) from results) as results, (select count(*) from result_parts) as parts',
    )
    return [Number(row?.results), Number(row?.parts)]
  }
  const skip = (milliseconds: number) => clock.skip(storage, milliseconds)
  return { place, skip, storage, observer, count }
}

let handles = 0
async function keep({ results }: Storage, text: string, principalId = owner): Promise<string> {
  const handle = `handle-${++handles}`
  expect(await results.keep({ handle, principalId, form: 'text', text })).toBe(true)
  return handle
}

function read(
  { results }: Storage,
  handle: string,
  more: Partial<{ principalId: string; offset: number; length: number }> = {},
) {
  return results.read({ handle, principalId: owner, offset: 0, length: 1000, ...more }, keptMs)
}

async function readAll(storage: Storage, handle: string, length: number): Promise<string[]> {
  const pages: string[] = []
  let offset = 0
  while (true) {
    const piece = await read(storage, handle, { offset, length })
    if (!piece) throw new Error('It is gone')
    pages.push(piece.text)
    offset = piece.offset + piece.text.length
    if (offset >= piece.total) return pages
  }
}

describe.each(databases)('the rest of a result on %s', (kind) => {
  const opened = (bounds?: ResultBounds) => openOn(kind, bounds)

  it('is read page by page, and the pages together are the whole, whatever is in it', async () => {
    const { storage } = await opened()
    const unit = fc.constantFrom('a', 'é', '漢', '😀', '\u0000', '\ud83d', '\ude00', '"', '\\', '\n', '\u2028')
    const text = fc.array(unit, { minLength: 1, maxLength: 60 }).map((units) => units.join(''))
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 20 }), async (whole, length) => {
        const handle = await keep(storage, whole)
        const pages = await readAll(storage, handle, length)
        expect(pages.join('')).toBe(whole)
        for (const page of pages) expect(page.length).toBeLessThanOrEqual(Math.max(2, length))
        if (whole.isWellFormed()) expect(pages.every((page) => page.isWellFormed())).toBe(true)
      }),
      { numRuns: kind === 'SQLite' ? 60 : 15 },
    )
  })

  it('is the same from any place on, with whole characters', async () => {
    const { storage } = await opened()
    // Longer than a part, with a character across the border.
    const whole = `${'a'.repeat(131_071)}😀${'b'.repeat(140_000)}😀`
    const handle = await keep(storage, whole)
    const total = whole.length
    expect(await read(storage, handle, { offset: 131_070, length: 3 })).toMatchObject({
      text: 'a😀',
      offset: 131_070,
      total,
    })
    expect(await read(storage, handle, { offset: 131_072, length: 3 })).toMatchObject({ text: '😀b', offset: 131_071 })
    expect(await read(storage, handle, { offset: total - 1, length: 3 })).toMatchObject({
      text: '😀',
      offset: total - 2,
    })
    expect(await read(storage, handle, { offset: total + 5 })).toMatchObject({ text: '', offset: total, total })
    expect((await readAll(storage, handle, 100_000)).join('')).toBe(whole)
  })

  it('does not exist for anybody else, nor under a handle that never was', async () => {
    const { storage } = await opened()
    const handle = await keep(storage, 'private')
    expect(await read(storage, handle, { principalId: 'agent:other' })).toBeUndefined()
    expect(await read(storage, `${handle}x`)).toBeUndefined()
    expect(await read(storage, handle)).toMatchObject({ text: 'private' })
  })

  it('is dropped a while after its last use', async () => {
    const { storage, skip, count } = await opened()
    const [used, unused] = [await keep(storage, 'used'), await keep(storage, 'unused')]
    await skip(keptMs - 1000)
    expect(await read(storage, used)).toMatchObject({ text: 'used' })
    await storage.flush()
    await skip(2000)
    expect(await read(storage, used)).toMatchObject({ text: 'used' })
    expect(await read(storage, unused)).toBeUndefined()
    await storage.results.sweep(keptMs)
    expect(await count()).toEqual([1, 1])
    await skip(keptMs)
    await storage.results.sweep(keptMs)
    expect(await count()).toEqual([0, 0])
  })

  it('survives the end of the gateway, and no handle stands in the file', async () => {
    const { storage, place, observer } = await opened()
    const handle = await keep(storage, 'still here')
    await storage.close()
    expect(JSON.stringify(await observer.all('select * from results'))).not.toContain(handle)
    expect(await read(await open(place), handle)).toMatchObject({ text: 'still here' })
  })

  it('makes room by dropping the oldest, of its own principal first', async () => {
    const few = { count: 3, characters: 300_000 }
    const { storage, skip, count } = await opened({ perPrincipal: few, inAll: { count: 5, characters: 1_000_000 } })
    const others = [await keep(storage, 'o1', 'agent:other'), await keep(storage, 'o2', 'agent:other')]
    const own: string[] = []
    for (let n = 0; n < 4; n++) {
      await skip(10)
      own.push(await keep(storage, `n${n}`))
    }
    expect(await Promise.all(own.map(async (handle) => (await read(storage, handle))?.text))).toEqual([
      undefined,
      'n1',
      'n2',
      'n3',
    ])
    for (const handle of others) expect(await read(storage, handle, { principalId: 'agent:other' })).toBeDefined()
    await storage.flush()
    await skip(10)
    const third = await keep(storage, 'third', 'agent:third')
    expect(await read(storage, third, { principalId: 'agent:third' })).toBeDefined()
    expect(await count()).toEqual([5, 5])
    await skip(10)
    const large = await keep(storage, 'x'.repeat(299_999))
    expect(await Promise.all(own.map((handle) => read(storage, handle)))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect((await readAll(storage, large, 300_000)).join('')).toHaveLength(299_999)
    expect(
      await storage.results.keep({ handle: 'h', principalId: owner, form: 'text', text: 'x'.repeat(300_001) }),
    ).toBe(false)
  })

  it('stays within its bounds when many come at once', async () => {
    const few = { count: 4, characters: 1_000_000 }
    const { storage, count } = await opened({ perPrincipal: few, inAll: few })
    await Promise.all(Array.from({ length: 12 }, (_, n) => keep(storage, `text ${n}`)))
    expect(await count()).toEqual([4, 4])
  })

  it('is written in parts, and a claim does not wait for all of them', async () => {
    const { storage, count } = await opened()
    let kept = false
    const keeping = keep(storage, 'x'.repeat(16_000_000)).then(() => {
      kept = true
    })
    while ((await count())[1] === 0) await new Promise(setImmediate)
    await storage.claim(callOf('write'))
    expect(kept).toBe(false)
    await keeping
  })

  it('leaves nothing behind when it has to make room before it is written', async () => {
    const one = { count: 1, characters: 67_108_864 }
    const { storage, count } = await opened({ perPrincipal: one, inAll: one })
    const large = { handle: 'large', principalId: owner, form: 'text' as const, text: 'x'.repeat(16_000_000) }
    const keeping = storage.results.keep(large)
    while ((await count())[1] === 0) await new Promise(setImmediate)
    const small = await keep(storage, 'small')
    expect(await keeping).toBe(false)
    expect(await read(storage, small)).toMatchObject({ text: 'small' })
    expect(await count()).toEqual([1, 1])
  })

  it('is not promised by a store that cannot keep it', async () => {
    const { storage } = await opened()
    await storage.close()
    await expect(storage.results.keep({ handle: 'h', principalId: owner, form: 'text', text: 'x' })).rejects.toThrow()
  })
})
