import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createResponseReader } from '../../src/servers/http/response.ts'

type Read = { status?: number; headers?: [string, string][]; body: string; end?: 'clean' | 'unclean'; error?: string }

/** What a reader tells of these bytes, given in these pieces, when the other side then hangs up. */
function read(pieces: readonly string[]): Read {
  const found: Read = { body: '' }
  const reader = createResponseReader({
    onHead({ status, headers }) {
      found.status = status
      found.headers = [...headers]
    },
    onData(chunk) {
      found.body += chunk.toString('latin1')
    },
    onEnd(clean) {
      found.end = clean ? 'clean' : 'unclean'
    },
    onError({ message }) {
      found.error = message
    },
  })
  reader.expect()
  for (const piece of pieces) if (found.error === undefined && !found.end) reader.push(Buffer.from(piece, 'latin1'))
  reader.finish()
  return found
}

const answer = (head: string, body: string) => `HTTP/1.1 200 OK\r\n${head}\r\n${body}`

describe('an answer over HTTP', () => {
  const whole = [
    answer('Content-Length: 5\r\nContent-Type: application/json\r\n', 'hello'),
    answer('Transfer-Encoding: chunked\r\n', '3\r\nhel\r\n2;name="a b"\r\nlo\r\n0\r\nTrailer: x\r\n\r\n'),
    answer('transfer-encoding: Chunked\r\nx:\r\n', '005\r\nhello\r\n000\r\n\r\n'),
    `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${answer('content-length:5\r\n', 'hello')}`,
  ]

  it.each(whole)('is read the same in whatever pieces it comes: %j', (text) => {
    const expected = read([text])
    expect(expected).toMatchObject({ status: 200, body: 'hello', end: 'clean' })
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(text.length), { maxLength: 12 }), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), text.length]
        const pieces = places.slice(1).map((to, index) => text.slice(places[index], to))
        expect(read(pieces.filter((piece) => piece !== ''))).toEqual(expected)
      }),
    )
  })

  it('ends with the connection where it has no length, and then the connection is not used again', () => {
    expect(read([answer('content-type: text/plain\r\n', 'hel'), 'lo'])).toMatchObject({ body: 'hello', end: 'unclean' })
    expect(read(['HTTP/1.0 200 OK\r\n\r\nhello'])).toMatchObject({ body: 'hello', end: 'unclean' })
  })

  it.each([
    [answer('content-length: 2\r\n', 'ok')],
    ['HTTP/1.1 204 No Content\r\n\r\n'],
    ['HTTP/1.1 304 Not Modified\r\nkeep-alive: timeout=5\r\n\r\n'],
    ['HTTP/1.1 202\r\ncontent-length: 0\r\n\r\n'],
  ])('leaves the connection usable: %j', (text) => {
    expect(read([text])).toMatchObject({ end: 'clean' })
  })

  it.each([
    [answer('content-length: 2\r\nconnection: close\r\n', 'ok')],
    [answer('content-length: 2\r\nConnection: Keep-Alive, CLOSE\r\n', 'ok')],
    ['HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
    [`${answer('content-length: 2\r\n', 'ok')}HTTP/1.1 200 OK\r\n\r\n`],
    ['HTTP/1.1 204 No Content\r\ncontent-length: 7\r\n\r\n'],
    ['HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n'],
  ])('does not leave the connection usable: %j', (text) => {
    expect(read([text])).toMatchObject({ end: 'unclean' })
  })

  it.each([
    ['two lengths', answer('content-length: 5\r\ncontent-length: 5\r\n', 'hello')],
    ['a length and a coding', answer('content-length: 5\r\ntransfer-encoding: chunked\r\n', '0\r\n\r\n')],
    ['two codings', answer('transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n', '0\r\n\r\n')],
    ['a coding that is not known', answer('transfer-encoding: gzip, chunked\r\n', '0\r\n\r\n')],
    ['a coding with another blank', answer('transfer-encoding: chunked\xa0\r\n', '0\r\n\r\n')],
    ['a coding with a control', answer('transfer-encoding: \vchunked\r\n', '0\r\n\r\n')],
    ['a coding in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a length below nothing', answer('content-length: -1\r\n', '')],
    ['a length with a sign', answer('content-length: +5\r\n', 'hello')],
    ['a length in other digits', answer('content-length: 0x5\r\n', 'hello')],
    ['a list as its length', answer('content-length: 5, 5\r\n', 'hello')],
    ['no digits in its length', answer('content-length:\r\n', '')],
    ['a folded header', answer('x: a\r\n b\r\n', '')],
    ['a blank before the colon', answer('content-length : 5\r\n', 'hello')],
    ['a header without a name', answer(': 5\r\n', '')],
    ['a header without a colon', answer('content-length\r\n', '')],
    ['a bare line feed', answer('x: a\nb: c\r\n', '')],
    ['a bare carriage return', answer('x: a\rb: c\r\n', '')],
    ['a zero byte', answer('x: a\0\r\n', '')],
    ['another protocol', 'HTTP/2 200\r\n\r\n'],
    ['another protocol from now on', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n'],
    ['no protocol at all', '{"jsonrpc":"2.0"}\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a piece without a length', answer('transfer-encoding: chunked\r\n', '\r\n')],
    ['a piece with a signed length', answer('transfer-encoding: chunked\r\n', '+5\r\nhello\r\n0\r\n\r\n')],
    ['a piece of 2^40 bytes', answer('transfer-encoding: chunked\r\n', '10000000000\r\n')],
    ['a piece that is longer than it says', answer('transfer-encoding: chunked\r\n', '2\r\nhello\r\n0\r\n\r\n')],
    ['a piece that ends with a line feed', answer('transfer-encoding: chunked\r\n', '5\r\nhello\n0\r\n\r\n')],
    ['an extension with a line feed', answer('transfer-encoding: chunked\r\n', '5;a\nb\r\nhello\r\n0\r\n\r\n')],
    ['an extension without an end', answer('transfer-encoding: chunked\r\n', `5;${'a'.repeat(2000)}`)],
    ['trailers without an end', answer('transfer-encoding: chunked\r\n', `0\r\n${'a: b\r\n'.repeat(2000)}`)],
    ['a head without an end', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(4000)}`],
    ['hints without an end', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20)],
  ])('is refused with %s', (_with, text) => {
    expect(read([text]).error).toBeDefined()
    expect(read([...text]).error).toBeDefined()
  })

  it('is not complete before all of it came', () => {
    for (const text of whole) expect(read([text.slice(0, -1)]).end).toBeUndefined()
  })

  it('that nobody asked for is refused', () => {
    const errors: string[] = []
    const nothing = () => {}
    const reader = createResponseReader({
      onHead: nothing,
      onData: nothing,
      onEnd: nothing,
      onError: ({ message }) => errors.push(message),
    })
    reader.push(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))
    expect(errors).toHaveLength(1)
  })
})
