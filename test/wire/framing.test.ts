import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineReader, idOfLongLine, type LongLine } from '../../src/wire/lines.ts'
import { createSseReader, type SseEvent, toSseEvent } from '../../src/wire/sse.ts'

/** Bytes cut at arbitrary places, as a socket might cut them. */
const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 200 })

function* chunksOf(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  let from = 0
  for (const size of sizes) {
    if (from >= bytes.length) return
    yield bytes.subarray(from, from + size)
    from += size
  }
  if (from < bytes.length) yield bytes.subarray(from)
}

describe('lines', () => {
  it('are the same however the bytes are cut', () => {
    const line = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', ' '))
    fc.assert(
      fc.property(fc.array(line), cuts, (lines, sizes) => {
        const { found, push } = readLines(1000)
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''))
        for (const chunk of chunksOf(bytes, sizes)) push(chunk)
        expect(Buffer.concat(found.map((each) => Buffer.concat([each, Buffer.from('\n')])))).toEqual(bytes)
        expect(found).toHaveLength(lines.length)
      }),
    )
  })

  it('over the limit are let go with both their ends, and the next line is whole again', () => {
    fc.assert(
      fc.property(fc.integer({ min: 101, max: 30_000 }), cuts, (length, sizes) => {
        const { found, long, push } = readLines(100)
        const tooLong = `start${'x'.repeat(length - 8)}end`
        for (const chunk of chunksOf(Buffer.from(`before\n${tooLong}\nafter\n`), sizes)) push(chunk)
        expect(found.map(String)).toEqual(['before', 'after'])
        expect(long).toHaveLength(1)
        expect(long[0]?.bytes).toBe(length)
        expect(String(long[0]?.head).startsWith('start')).toBe(true)
        expect(String(long[0]?.tail).endsWith('end')).toBe(true)
        expect(long[0]?.head.length).toBeLessThanOrEqual(4096)
        expect(long[0]?.tail.length).toBeLessThanOrEqual(4096)
      }),
    )
  })

  it('of exactly the limit are kept', () => {
    const { found, long, push } = readLines(10)
    push(Buffer.from('0123456789\n01234567890\n'))
    expect(found.map(String)).toEqual(['0123456789'])
    expect(long).toHaveLength(1)
  })

  it.each([
    ['{"jsonrpc":"2.0","id":7,"result":{', 'x"}}', '7'],
    ['{ "jsonrpc" : "2.0" , "id" : 7 , "result":{', 'x"}}', '7'],
    ['{"id":7,"jsonrpc":"2.0","result":{', 'x"}}', '7'],
    ['{"jsonrpc":"2.0","id":"seven","error":{', 'x"}}', '"seven"'],
    ['{"jsonrpc":"2.0","result":{"text":"', '"},"id":7}', '7'],
    ['{"jsonrpc":"2.0","result":{"text":"', '"},"id":7}\r', '7'],
    ['{"result":{"id":7,"text":"', '"},"jsonrpc":"2.0"}', undefined],
    ['{"jsonrpc":"2.0","method":"x","params":{"id":7,"text":"', '"}}', undefined],
    ['{"jsonrpc":"2.0","result":{"a":1,"text":"', '","id":7}}', undefined],
    ['noise "id":7', 'noise', undefined],
  ])('that began with %s and ended with %s tell whose answer they were', (head, tail, id) => {
    expect(idOfLongLine({ head: Buffer.from(head), tail: Buffer.from(tail), bytes: 100_000 })).toBe(id)
  })
})

describe('server-sent events', () => {
  it('come out as they went in, however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), cuts, (values, sizes) => {
        const { events, push } = readEvents(10_000)
        const bytes = Buffer.concat(values.map((value) => toSseEvent(JSON.stringify(value))))
        for (const chunk of chunksOf(bytes, sizes)) push(chunk)
        expect(events.map(({ data }) => String(data))).toEqual(values.map((value) => JSON.stringify(value)))
        expect(events.every(({ event }) => event === 'message')).toBe(true)
      }),
    )
  })

  it.each([
    ['a comment is nothing', ': keep-alive\n\n', []],
    ['an event without data is nothing', 'event: ping\n\n', []],
    ['an event without a name is a message', 'data: a\n\n', [['message', 'a']]],
    [
      'a name counts for one event',
      'event: x\ndata: a\n\ndata: b\n\n',
      [
        ['x', 'a'],
        ['message', 'b'],
      ],
    ],
    ['several lines of data are one text', 'data: a\ndata: b\ndata:\n\n', [['message', 'a\nb\n']]],
    [
      'one blank behind the colon is not part of it',
      'data:a\n\ndata: a\n\ndata:  a\n\n',
      [
        ['message', 'a'],
        ['message', 'a'],
        ['message', ' a'],
      ],
    ],
    ['line ends may have a carriage return', 'event: x\r\ndata: a\r\n\r\n', [['x', 'a']]],
    ['unknown fields are skipped', 'retry: 5\nother: x\ndata: a\n\n', [['message', 'a']]],
    ['what never ends is not an event', 'data: a\n', []],
  ] as const)('%s', (_promise, text, expected) => {
    const { events, push } = readEvents(1000)
    push(Buffer.from(text))
    expect(events.map(({ event, data }) => [event, String(data)])).toEqual(expected)
  })

  it('carry their id', () => {
    const { events, push } = readEvents(1000)
    push(toSseEvent('{}', '42'))
    expect(events[0]?.id).toBe('42')
  })

  it.each([
    ['one line without an end', (piece: string) => piece, 'data: '],
    ['lines without an end', (piece: string) => `data: ${piece}\n`, ''],
  ])('of %s are reported as soon as they are too long', (_what, toChunk, head) => {
    const { tooLong, push } = readEvents(1000)
    push(Buffer.from(head))
    for (let chunk = 0; chunk < 3; chunk += 1) push(Buffer.from(toChunk('x'.repeat(400))))
    expect(tooLong()).toBeGreaterThan(0)
  })

  it('of empty lines without an end are reported as too long', () => {
    const { tooLong, push } = readEvents(1000)
    push(Buffer.from('data:\n'.repeat(900)))
    expect(tooLong()).toBe(0)
    push(Buffer.from('data:\n'.repeat(200)))
    expect(tooLong()).toBeGreaterThan(0)
  })
})

function readLines(maxBytes: number) {
  const found: Buffer[] = []
  const long: LongLine[] = []
  const reader = createLineReader({
    maxBytes,
    onLine: (line) => found.push(Buffer.from(line)),
    onLongLine: (line) => long.push(line),
  })
  return { found, long, push: reader.push }
}

function readEvents(maxBytes: number) {
  const events: SseEvent[] = []
  let count = 0
  const reader = createSseReader({
    maxBytes,
    onEvent: (event) => events.push({ ...event, data: Buffer.from(event.data) }),
    onTooLong: () => {
      count += 1
    },
  })
  return { events, push: reader.push, tooLong: () => count }
}
