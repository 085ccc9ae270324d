import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRingBuffer } from '../../src/lib/ring-buffer.ts'
import { toPlainLine } from '../../src/lib/text.ts'

describe('the last words of a program', () => {
  it('are kept whole while they fit, however they arrive', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string().map((text) => text.replaceAll('\n', ' ')),
          { maxLength: 20 },
        ),
        fc.integer({ min: 1, max: 7 }),
        (lines, size) => {
          const ring = createRingBuffer(100_000)
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
          for (let at = 0; at < bytes.length; at += size) ring.push(bytes.subarray(at, at + size))
          expect(ring.read().lines).toEqual(lines.map((line) => Buffer.from(line).toString()))
          expect(ring.read().dropped).toBe(0)
        },
      ),
    )
  })

  it('are the newest whole lines once there are too many, and the others are counted', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 500 }), (count, size) => {
        const ring = createRingBuffer(1000)
        const lines = Array.from({ length: count }, (_, index) => `line ${index}`)
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
        for (let at = 0; at < bytes.length; at += size) ring.push(bytes.subarray(at, at + size))
        const { lines: kept, dropped } = ring.read()
        expect(kept).toEqual(lines.slice(-kept.length))
        expect(dropped).toBe(count - kept.length)
        expect(Buffer.byteLength(kept.join('\n'))).toBeLessThanOrEqual(1000)
      }),
      { numRuns: 50 },
    )
  })

  it('of one endless line are its end', () => {
    const ring = createRingBuffer(1000)
    for (let piece = 0; piece < 100; piece += 1) ring.push(Buffer.from('x'.repeat(99) + (piece % 10)))
    expect(ring.read().lines).toHaveLength(1)
    expect(ring.read().lines[0]).toHaveLength(1000)
  })

  it('keep to their bound together with what is not finished yet', () => {
    const ring = createRingBuffer(1000)
    ring.push(Buffer.from(`${'first\n'.repeat(100)}begun`))
    const { lines, dropped } = ring.read(Buffer.from(` and ${'x'.repeat(800)}`))
    expect(lines.at(-1)).toMatch(/^begun and x{800}$/)
    expect(Buffer.byteLength(lines.join('\n'))).toBeLessThanOrEqual(1000)
    expect(dropped).toBe(101 - lines.length)
    expect(ring.read()).toEqual({ lines: [...Array(100).fill('first'), 'begun'], dropped: 0, unfinished: true })
  })

  it('may be nothing at all, or not finished yet', () => {
    const ring = createRingBuffer(1000)
    expect(ring.read().lines).toEqual([])
    ring.push(Buffer.from('\n\nunfinished'))
    expect(ring.read().lines).toEqual(['', '', 'unfinished'])
  })
})

it.each([
  ['\x1b[31mred\x1b[0m', 'red'],
  ['\x1b]8;;http://evil\x07link\x1b]8;;\x07', 'link'],
  ['windows\r', 'windows'],
  ['tab\tstays', 'tab\tstays'],
  ['\x1b\x1b[31m[31mnested', '\\u{1b}[31mnested'],
  ['over\rwritten', 'over\\u{d}written'],
])('shows %j to people as %j', (line, shown) => {
  expect(toPlainLine(line)).toBe(shown)
})
