import { emitKeypressEvents } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import type { Size } from './screen.ts'
import type { Key } from './state.ts'

/** Takes over the whole terminal; `close` restores it. */
export type FullScreen = {
  size(): Size
  /** Replaces everything on the screen. */
  show(lines: readonly string[]): void
  ring(): void
  close(): void
}

export type FullScreenParts = {
  readonly input: ReadStream
  readonly output: WriteStream
  onKey(key: Key): void
  onResize(): void
  /** Input or output has closed, so no key can be pressed. */
  onGone(): void
}

const enter = '\x1b[?1049h\x1b[?25l'
const leave = '\x1b[?25h\x1b[?1049l'

export function openFullScreen({ input, output, onKey, onResize, onGone }: FullScreenParts): FullScreen {
  let closed = false
  let shown = ''
  emitKeypressEvents(input)
  input.on('keypress', onPressed)
  input.on('end', onGone)
  output.on('resize', onResized)
  output.on('error', onGone)
  process.on('exit', close) // a crash must not leave a terminal without echo
  input.setRawMode(true)
  input.resume()
  output.write(enter)

  return {
    size: () => ({ columns: output.columns || 80, rows: output.rows || 24 }),
    show(lines) {
      const text = lines.map((line) => `${line}\x1b[K`).join('\r\n')
      if (closed || text === shown) return
      shown = text
      output.write(`\x1b[H${text}\x1b[J`)
    },
    ring: () => void output.write('\x07'),
    close,
  }

  function onPressed(text: string | undefined, pressed: Pressed): void {
    onKey(toKey(text, pressed))
  }

  function onResized(): void {
    shown = ''
    onResize()
  }

  function close(): void {
    if (closed) return
    closed = true
    process.off('exit', close)
    input.off('keypress', onPressed)
    input.off('end', onGone)
    output.off('resize', onResized)
    input.setRawMode(false)
    input.pause()
    output.write(leave)
  }
}

type Pressed = { readonly name?: string | undefined; readonly ctrl?: boolean; readonly meta?: boolean }

/** A key that types text is named after that text; Ctrl or Alt with a letter is a different key. */
export function toKey(text: string | undefined, { name, ctrl, meta }: Pressed): Key {
  if (name === 'escape') return { name, text: '' }
  if (ctrl || meta) return { name: `${ctrl ? 'ctrl' : 'alt'}-${name ?? ''}`, text: '' }
  if (name === 'space') return { name, text: ' ' }
  if (text !== undefined && /^[^\p{Cc}\p{Cs}]$/u.test(text)) return { name: text, text }
  return { name: name === 'enter' ? 'return' : (name ?? ''), text: '' }
}
