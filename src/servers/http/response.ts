/** Headers by lower-case name. The values of a repeated header are joined. */
export type ResponseHeaders = ReadonlyMap<string, string>

export type ResponseHead = {
  readonly status: number
  readonly headers: ResponseHeaders
  /** Whether the head allows another request on the same socket. */
  readonly keepsOpen: boolean
}

/** The bytes are not valid HTTP, or two HTTP readers could interpret them differently. */
export class HttpError extends Error {
  readonly code = 'INVALID_HTTP'

  constructor(message: string) {
    super(message)
    this.name = 'HttpError'
  }
}

export type ResponseReader = {
  /** A request was sent: the next bytes are its answer. */
  expect(): void
  /** Does not keep `chunk`: the caller may overwrite it after this function returns. */
  push(chunk: Buffer): void
  /** To be called when the server has closed the socket. Returns whether the answer is complete. */
  finish(): boolean
  /** Ignores all further bytes. */
  stop(): void
}

type Parts = {
  onHead(head: ResponseHead): void
  /** The buffer is reused after the call. Copy the bytes to keep them. */
  onData(chunk: Buffer): void
  /** The answer is complete. `clean`: no extra bytes followed and the socket can be reused. */
  onEnd(clean: boolean): void
  onError(error: HttpError): void
}

type State = 'idle' | 'head' | 'sized' | 'size-line' | 'chunk' | 'chunk-end' | 'trailers' | 'endless'

const maxHead = 16 * 1024
const maxLine = 1024
const maxTrailers = 8 * 1024
const maxInterim = 16

/**
 * Reads the answers on one socket, one at a time. It is strict, because a lenient reader can be tricked into reading
 * one answer as two (response splitting).
 */
export function createResponseReader(parts: Parts): ResponseReader {
  let state: State = 'idle'
  let kept: Buffer | undefined
  let left = 0
  let trailers = 0
  let interim = 0
  let keepsOpen = false

  return {
    expect() {
      state = 'head'
      kept = undefined
      interim = 0
    },
    push(chunk) {
      try {
        let rest: Buffer | undefined = chunk
        if (state === 'idle') throw new HttpError('The server sent data without a request')
        while (rest) rest = step(rest)
      } catch (error) {
        state = 'idle'
        if (!(error instanceof HttpError)) throw error
        parts.onError(error)
      }
    },
    finish() {
      if (state !== 'endless') return false
      end(false)
      return true
    },
    stop() {
      state = 'idle'
    },
  }

  /** Reads one part of the answer and returns the remaining bytes, if there are any. */
  function step(chunk: Buffer): Buffer | undefined {
    switch (state) {
      case 'head':
        return readHead(chunk)
      case 'sized':
        return readSized(chunk)
      case 'size-line':
        return readSizeLine(chunk)
      case 'chunk':
        return readSized(chunk)
      case 'chunk-end':
        return readChunkEnd(chunk)
      case 'trailers':
        return readTrailers(chunk)
      case 'endless':
        parts.onData(chunk)
        return undefined
      case 'idle':
        return undefined
    }
  }

  function readHead(chunk: Buffer): Buffer | undefined {
    const bytes = kept ? Buffer.concat([kept, chunk]) : chunk
    const at = bytes.indexOf(headEnd)
    if ((at === -1 ? bytes.length : at) > maxHead)
      throw new HttpError(`The head of the answer has more than ${maxHead} bytes`)
    if (at === -1) {
      kept = bytes === chunk ? Buffer.from(chunk) : bytes
      return undefined
    }
    kept = undefined
    const rest = after(bytes, at + headEnd.length)
    const { version, ...head } = parseHead(bytes.toString('latin1', 0, at))
    if (head.status < 200) {
      if (head.status === 101 || ++interim > maxInterim)
        throw new HttpError('The server sent too many interim answers or switches the protocol')
      return rest
    }
    keepsOpen = head.keepsOpen
    enterBody(head, version)
    const empty = state === 'sized' && left === 0
    parts.onHead(head)
    if (empty && state === 'sized') end(rest === undefined)
    return rest
  }

  function enterBody({ status, headers }: ResponseHead, version: string): void {
    const coding = headers.get('transfer-encoding')
    const length = headers.get('content-length')
    if (coding !== undefined) {
      // Two lengths, or a coding with an unknown end, are used for response splitting.
      if (length !== undefined || version !== '1' || coding.toLowerCase() !== 'chunked')
        throw new HttpError('The length of the answer is ambiguous')
      state = 'size-line'
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new HttpError('The length of the answer is not a number')
      state = 'sized'
      left = Number(length)
    } else {
      state = 'endless'
    }
    if (status !== 204 && status !== 304) return
    keepsOpen &&= state === 'endless' || (state === 'sized' && left === 0)
    state = 'sized'
    left = 0
  }

  function readSized(chunk: Buffer): Buffer | undefined {
    const inChunk = state === 'chunk'
    const piece = chunk.length <= left ? chunk : chunk.subarray(0, left)
    left -= piece.length
    if (left === 0 && inChunk) state = 'chunk-end'
    parts.onData(piece)
    const rest = after(chunk, piece.length)
    if (left === 0 && state === 'sized') end(rest === undefined)
    return rest
  }

  function readSizeLine(chunk: Buffer): Buffer | undefined {
    const { line, rest } = readLine(chunk, maxLine)
    if (line === undefined) return undefined
    const size = /^([0-9a-fA-F]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/.exec(line)?.[1]
    if (size === undefined) throw new HttpError('A chunk of the answer has no length')
    left = Number.parseInt(size, 16)
    trailers = 0
    state = left === 0 ? 'trailers' : 'chunk'
    return rest
  }

  function readChunkEnd(chunk: Buffer): Buffer | undefined {
    const { line, rest } = readLine(chunk, 0)
    if (line !== undefined) state = 'size-line'
    return rest
  }

  /** Trailers are read and ignored. */
  function readTrailers(chunk: Buffer): Buffer | undefined {
    const { line, rest } = readLine(chunk, maxTrailers - trailers)
    if (line === undefined) return undefined
    if (!fieldValue.test(line)) throw new HttpError('A trailer of the answer is not valid')
    trailers += line.length + lineEnd.length
    if (line === '') end(rest === undefined)
    return rest
  }

  function readLine(chunk: Buffer, most: number): { line?: string; rest?: Buffer | undefined } {
    const bytes = kept ? Buffer.concat([kept, chunk]) : chunk
    const at = bytes.indexOf(lineEnd)
    const length = at === -1 ? bytes.length - 1 : at
    if (length > most) throw new HttpError(`A line of the answer has more than ${most} bytes`)
    kept = undefined
    if (at === -1) {
      kept = bytes === chunk ? Buffer.from(chunk) : bytes
      return {}
    }
    return { line: bytes.toString('latin1', 0, at), rest: after(bytes, at + lineEnd.length) }
  }

  function end(exact: boolean): void {
    state = 'idle'
    parts.onEnd(exact && keepsOpen)
  }
}

const headEnd = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')

function after(bytes: Buffer, at: number): Buffer | undefined {
  return at < bytes.length ? bytes.subarray(at) : undefined
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

function parseHead(text: string): ResponseHead & { version: string } {
  const lines = text.split('\r\n')
  const [, version, status] = statusLine.exec(lines[0] ?? '') ?? []
  if (version === undefined) throw new HttpError('The answer is not HTTP/1.1')
  const headers = new Map<string, string>()
  for (let index = 1; index < lines.length; index++) {
    const line = lines[index] ?? ''
    const colon = line.indexOf(':')
    const name = line.slice(0, colon === -1 ? 0 : colon).toLowerCase()
    const value = line.slice(colon + 1)
    if (!token.test(name) || !fieldValue.test(value)) throw new HttpError('A header of the answer is not valid')
    const before = headers.get(name)
    if (before !== undefined && name === 'content-length') throw new HttpError('The answer has several lengths')
    headers.set(name, before === undefined ? trimBlanks(value) : `${before}, ${trimBlanks(value)}`)
  }
  const closes = /(?:^|[ \t,])close(?:$|[ \t,])/i.test(headers.get('connection') ?? '')
  return { version, status: Number(status), headers, keepsOpen: version === '1' && !closes }
}

/** Removes only spaces and tabs, as HTTP defines it. Other white space is part of the value. */
function trimBlanks(value: string): string {
  let start = 0
  let end = value.length
  while (start < end && isBlank(value.charCodeAt(start))) start++
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--
  return value.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}
