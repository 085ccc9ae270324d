import { createPieces } from '../lib/pieces.ts'
import { createLineReader } from './lines.ts'

export type SseEvent = { readonly event: string; readonly data: Buffer; readonly id: string | undefined }

/** The last event id, and the pause before the next request; undefined if the server did not send them. */
export type StreamPlace = { readonly id?: string; readonly retryMs?: number }

export type SseReader = { push(chunk: Buffer): void }

const carriageReturn = 0x0d
const lineFeed = Buffer.from('\n')

/** Reads server-sent events from bytes. The size of each event is limited, because an event may never end. */
export function createSseReader(parts: {
  maxBytes: number
  onEvent(event: SseEvent): void
  onPlace?(place: StreamPlace): void
  onTooLong(): void
}): SseReader {
  let event = ''
  let id: string | undefined
  const data = createPieces()
  let hasData = false
  let place: StreamPlace | undefined

  const dispatch = () => {
    if (place) parts.onPlace?.(place)
    place = undefined
    if (hasData) parts.onEvent({ event: event || 'message', data: data.take(), id })
    event = ''
    hasData = false
    data.clear()
  }
  const onId = (text: string) => {
    id = text
    if (/^[\x21-\x7e][\x20-\x7e]{0,1023}$/.test(text)) place = { ...place, id: text } // the client sends it back in a header
  }
  const onField = (name: string, value: Buffer) => {
    if (name === 'event') event = value.toString('utf8')
    if (name === 'id') onId(value.toString('utf8'))
    if (name === 'retry' && /^\d{1,9}$/.test(value.toString('latin1'))) {
      place = { ...place, retryMs: Number(value.toString('latin1')) }
    }
    if (name !== 'data') return
    // Line feeds count too, otherwise an event of empty lines would have no limit.
    const feed = hasData ? lineFeed.length : 0
    if (data.bytes() + feed + value.length > parts.maxBytes) return parts.onTooLong()
    if (hasData) data.add(lineFeed)
    data.add(value)
    hasData = true
  }
  return createLineReader({
    maxBytes: parts.maxBytes,
    onLine(line) {
      const text = line.at(-1) === carriageReturn ? line.subarray(0, -1) : line
      if (text.length === 0) return dispatch()
      const colon = text.indexOf(0x3a)
      if (colon === 0) return
      const name = (colon === -1 ? text : text.subarray(0, colon)).toString('latin1')
      onField(name, colon === -1 ? Buffer.alloc(0) : text.subarray(text[colon + 1] === 0x20 ? colon + 2 : colon + 1))
    },
    onOverflow: () => parts.onTooLong(),
  })
}

/** One event of one line. JSON from `JSON.stringify` has no line feed; bytes of a server are checked by the caller. */
export function toSseEvent(json: Buffer | string, id?: string): Buffer {
  const head = id === undefined ? 'event: message\ndata: ' : `event: message\nid: ${id}\ndata: `
  const body = typeof json === 'string' ? Buffer.from(json) : json
  return Buffer.concat([Buffer.from(head), body, Buffer.from('\n\n')])
}

/** A comment that shows proxies and clients that a quiet stream is alive. */
export const sseKeepAlive = Buffer.from(': keep-alive\n\n')
