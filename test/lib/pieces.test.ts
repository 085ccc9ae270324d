import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createPieces } from '../../src/lib/pieces.ts'

const cut = fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes))
const wide = fc.integer({ min: 4000, max: 9000 }).map((length) => Buffer.alloc(length, length % 251))

it('gives all bytes back in their order, however they were cut', () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.oneof({ weight: 20, arbitrary: cut }, wide))), (messages) => {
      const pieces = createPieces()
      for (const message of messages) {
        for (const piece of message) pieces.add(piece)
        expect(pieces.bytes()).toBe(Buffer.concat(message).length)
        expect(pieces.take().equals(Buffer.concat(message))).toBe(true)
      }
    }),
  )
})

it('keeps bytes that come one by one in few buffers', () => {
  const pieces = createPieces()
  const byte = Buffer.from('x')
  for (let count = 0; count < 1_000_000; count++) pieces.add(byte)
  expect(pieces.list().length).toBeLessThan(40)
  expect(pieces.take().equals(Buffer.alloc(1_000_000, 'x'))).toBe(true)
})

it('keeps small pieces among large ones in few buffers', () => {
  const pieces = createPieces()
  for (let count = 0; count < 1000; count++) pieces.add(Buffer.alloc(count % 2 === 0 ? 1 : 4096))
  expect(pieces.list().length).toBeLessThanOrEqual(1000)
  expect(pieces.bytes()).toBe(500 * 4097)
})

it('does not copy a message that came in one piece, and does not change what it gave out', () => {
  const pieces = createPieces()
  const [first, second] = [Buffer.from('first'), Buffer.from('second')]
  pieces.add(first)
  expect(pieces.take()).toBe(first)
  pieces.add(Buffer.from('s'))
  pieces.add(Buffer.from('econd'))
  const whole = pieces.take()
  for (let count = 0; count < 100; count++) pieces.add(Buffer.from('other'))
  expect(whole).toEqual(second)
  expect(pieces.take().length).toBe(500)
  expect(pieces.take().length).toBe(0)
})
