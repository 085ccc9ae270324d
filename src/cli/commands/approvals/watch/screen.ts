import type { createColors } from 'picocolors'
import type { Approval, ApprovalDrift } from '../../../../contract/approval.ts'
import type { Risk } from '../../../../contract/risk.ts'
import { toVisible } from '../../../../shared/visible.ts'
import { cut, wrap, wrapWords } from '../../../terminal/width.ts'
import { driftWords, type Fact, toFacts, toSentTexts, toSuspectLine } from '../approval-view.ts'
import { type Asking, describePending, usual, type View, type Watch } from './state.ts'

type Colours = ReturnType<typeof createColors>
export type Size = { readonly columns: number; readonly rows: number }
export type Look = { readonly size: Size; readonly now: number; readonly colours: Colours }

/** The whole screen, line by line; none is wider than the terminal, and there are no more than it has rows. */
export function draw(watch: Watch, look: Look): string[] {
  const { size, colours } = look
  const { bold, dim } = colours
  const body = toBody(watch, look)
  const { rows, lines } = toView(watch, look)
  const top = Math.max(0, Math.min(watch.top, lines - rows))
  const visible = body.slice(top, top + rows)
  const more = lines > rows ? `lines ${top + 1} to ${top + visible.length} of ${lines}; space and b turn the pages` : ''
  return [
    bold(cut(toLine(toHeader(watch)), size.columns)),
    '',
    ...visible,
    ...Array.from({ length: rows - visible.length }, () => ''),
    dim(cut(more, size.columns)),
    ...toFooter(watch, look),
  ].slice(0, size.rows)
}

/** Without header, the blank line below it, the line that says how far the question goes, and the footer. */
export function toView(watch: Watch, look: Look): View {
  const rows = Math.max(1, look.size.rows - 3 - toFooter(watch, look).length)
  const lines = toBody(watch, look).length
  const after = watch.shown ? toTexts(watch.shown, look.size.columns).after : 0
  return { lines, rows, needed: lines - after }
}

/** What happened, what is about to happen or to be said, and the keys. */
function toFooter(watch: Watch, { size: { columns }, now, colours }: Look): string[] {
  const { yellow, red, dim } = colours
  const { shown } = watch
  const isOpen = shown?.state === 'waiting'
  return [
    ...wrapWords(toLine((isOpen && toTexts(shown, columns).suspect) || ''), columns)
      .slice(0, 3)
      .filter((line) => line !== '')
      .map(red),
    ...wrapWords(toLine(watch.note), columns).slice(0, 2),
    ...wrapWords(toLine(toPrompt(watch, now)), columns)
      .slice(0, 4)
      .map(yellow),
    ...wrapWords(toKeys(watch), columns).map(dim),
  ]
}

function toHeader({ open, shown, person, linked }: Watch): string {
  const at = open.findIndex(({ id }) => id === shown?.id)
  const place = at === -1 ? '' : `, ${at + 1} in view`
  const link = linked ? '' : ' · the gateway is away'
  return `Sallyport approvals · ${person} · ${open.length} open${place}${link}`
}

function toBody(watch: Watch, { size, now, colours }: Look): string[] {
  const { shown } = watch
  if (!shown) return ['Nobody asks anything at the moment.', '', 'Questions appear here as they come.']
  const { columns } = size
  const { bold, dim } = colours
  const paint = riskPaint(colours, shown.risk)
  const facts = toFacts(shown, now)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]): Fact => [name, name === 'state' ? `${value}${toWaits(watch)}` : value])
  const width = Math.max(...facts.map(([name]) => name.length)) + 2
  return [
    ...wrapWords(toLine(shown.title), columns).map(bold),
    '',
    ...facts.flatMap(([name, value = '']) => {
      const [first = '', ...rest] = wrapWords(toLine(value), columns - width)
      const shownFirst = name === 'risk' ? paint(first) : first
      return [`${dim(name.padEnd(width))}${shownFirst}`, ...rest.map((line) => ' '.repeat(width) + line)]
    }),
    ...[...toDriftLines(watch, columns), ...toTexts(shown, columns).lines].map((line) =>
      line.startsWith(' ') ? line : dim(line),
    ),
  ]
}

const driftLines = new WeakMap<ApprovalDrift, { readonly columns: number; readonly lines: string[] }>()

/** How the tool differs from what was accepted, above what is sent to it. */
function toDriftLines({ shown, detail }: Watch, columns: number): string[] {
  const drift = detail && detail.id === shown?.id ? detail.drift : undefined
  if (!drift) return []
  const known = driftLines.get(drift)
  if (known?.columns === columns) return known.lines
  const lines = ['', driftWords[drift.kind], ...toBlock(toVisible(drift.difference), columns)]
  driftLines.set(drift, { columns, lines })
  return lines
}

/** Few words: this is in the first lines of a small screen. */
function toWaits({ shown, detail }: Watch): string {
  if (shown?.state !== 'waiting' || detail?.id !== shown.id) return ''
  const { requests, complete } = detail.waiting
  if (requests > 0) return '; the agent is waiting for it'
  return complete ? '; no request waits for it right now' : '; no request waits for it at this instance'
}

/** What does not change with the time; arguments may be long, and a screen is drawn every second. */
type Texts = {
  readonly columns: number
  readonly lines: string[]
  /** Lines at the end that are not a part of what is approved. */
  readonly after: number
  readonly suspect: string | undefined
}
const texts = new WeakMap<Approval, Texts>()

/** Only headings begin at the edge: the text of a value is always indented. */
function toTexts(approval: Approval, columns: number): Texts {
  const known = texts.get(approval)
  if (known?.columns === columns) return known
  const { description } = approval
  const sent = toSentTexts(approval).flatMap(({ heading, text }) => ['', heading, ...toBlock(text, columns)])
  const about = description ? ['', 'what the tool says it does', ...toBlock(toVisible(description), columns)] : []
  const made = { columns, lines: [...sent, ...about], after: about.length, suspect: toSuspectLine(approval) }
  texts.set(approval, made)
  return made
}

/** Long lines go on behind an arrow: nothing that a value says can pass for the line of another one. */
function toBlock(text: string, columns: number): string[] {
  return text
    .replaceAll('\t', '  ')
    .split('\n')
    .flatMap((line) => wrap(line, columns - 4).map((piece, index) => `  ${index === 0 ? '' : '↪ '}${piece}`))
}

function toPrompt({ asking, pending }: Watch, now: number): string {
  if (asking) return toQuestion(asking)
  if (!pending) return ''
  const seconds = Math.max(0, Math.ceil((pending.until - now) / 1000))
  return `In ${seconds} s: ${describePending(pending)}`
}

function toQuestion(asking: Asking): string {
  switch (asking.step) {
    case 'reason':
      return `Why not? ${tail(asking.text)}`
    case 'covers':
      return 'Further calls: c with exactly these arguments, s some the same, t any arguments'
    case 'same':
      return `Which arguments stay the same, such as /repo? ${tail(asking.text)}`
    case 'calls':
      return `How many further calls? [${usual.calls}] ${tail(asking.text)}`
    case 'minutes':
      return `For how many minutes? [${usual.minutes}] ${tail(asking.text)}`
  }
}

/** Whoever types sees the end of it. */
function tail(text: string): string {
  const characters = [...text]
  return `${characters.length > 40 ? '…' : ''}${characters.slice(-40).join('')}_`
}

function toKeys({ asking, pending, shown }: Watch): string {
  if (asking) return 'Enter goes on · Esc goes back · Ctrl+C quits'
  if (pending) return 'u takes it back · n next · p previous · q sends it and quits'
  if (!shown) return 'q quit'
  if (shown.state !== 'waiting') return 'n next · p previous · q quit'
  return 'a approve · g approve with a grant · d deny · n next · p previous · q quit'
}

function riskPaint({ green, yellow, red }: Colours, risk: Risk): (text: string) => string {
  return { read: green, write: yellow, danger: red }[risk]
}

function toLine(text: string): string {
  return toVisible(text.replace(/[\t\r\n]+/g, ' '))
}
