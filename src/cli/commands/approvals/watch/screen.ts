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

/** The lines of the screen; they fit the width and height of the terminal. */
export function draw(watch: Watch, look: Look): string[] {
  const { size, colours } = look
  const { bold, dim } = colours
  const body = toBody(watch, look)
  const { rows, lines } = toView(watch, look)
  const top = Math.max(0, Math.min(watch.top, lines - rows))
  const visible = body.slice(top, top + rows)
  const more = lines > rows ? `lines ${top + 1} to ${top + visible.length} of ${lines}; Space and b turn the pages` : ''
  return [
    bold(cut(toLine(toHeader(watch)), size.columns)),
    '',
    ...visible,
    ...Array.from({ length: rows - visible.length }, () => ''),
    dim(cut(more, size.columns)),
    ...toFooter(watch, look),
  ].slice(0, size.rows)
}

/** The part of the screen for the approval: without the header, the blank line below it, the page line and the footer. */
export function toView(watch: Watch, look: Look): View {
  const rows = Math.max(1, look.size.rows - 3 - toFooter(watch, look).length)
  const lines = toBody(watch, look).length
  const after = watch.shown ? toTexts(watch.shown, look.size.columns).after : 0
  return { lines, rows, needed: lines - after }
}

/** The last note, the pending answer or the current prompt, and the keys. */
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
  const link = linked ? '' : ' · connection lost'
  return `Sallyport approvals · ${person} · ${open.length} open${place}${link}`
}

function toBody(watch: Watch, { size, now, colours }: Look): string[] {
  const { shown } = watch
  if (!shown) return ['No approvals are waiting.', '', 'New approvals appear here.']
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

/** The difference to the accepted definition of the tool, shown above the arguments. */
function toDriftLines({ shown, detail }: Watch, columns: number): string[] {
  const drift = detail && detail.id === shown?.id ? detail.drift : undefined
  if (!drift) return []
  const known = driftLines.get(drift)
  if (known?.columns === columns) return known.lines
  const lines = ['', driftWords[drift.kind], ...toBlock(toVisible(drift.difference), columns)]
  driftLines.set(drift, { columns, lines })
  return lines
}

/** Short, because it is in the first lines of a small screen. */
function toWaits({ shown, detail }: Watch): string {
  if (shown?.state !== 'waiting' || detail?.id !== shown.id) return ''
  const { requests, complete } = detail.waiting
  if (requests > 0) return '; the agent is waiting'
  return complete ? '; the agent is not waiting now' : '; the agent is not waiting at this instance'
}

/** Text that does not depend on the time. It is cached, because the screen is drawn often and arguments can be long. */
type Texts = {
  readonly columns: number
  readonly lines: string[]
  /** Lines at the end that are not part of what is approved. */
  readonly after: number
  readonly suspect: string | undefined
}
const texts = new WeakMap<Approval, Texts>()

/** Values are always indented, so that a value cannot look like a heading. */
function toTexts(approval: Approval, columns: number): Texts {
  const known = texts.get(approval)
  if (known?.columns === columns) return known
  const { description } = approval
  const sent = toSentTexts(approval).flatMap(({ heading, text }) => ['', heading, ...toBlock(text, columns)])
  const about = description ? ['', 'description of the tool', ...toBlock(toVisible(description), columns)] : []
  const made = { columns, lines: [...sent, ...about], after: about.length, suspect: toSuspectLine(approval) }
  texts.set(approval, made)
  return made
}

/** A wrapped line continues after an arrow, so that part of a value cannot look like another line. */
function toBlock(text: string, columns: number): string[] {
  return text
    .replaceAll('\t', '  ')
    .split('\n')
    .flatMap((line) => wrap(line, columns - 4).map((piece, index) => `  ${index === 0 ? '' : '↪ '}${piece}`))
}

function toPrompt({ asking, pending }: Watch, now: number): string {
  if (asking) return toPromptText(asking)
  if (!pending) return ''
  const seconds = Math.max(0, Math.ceil((pending.until - now) / 1000))
  return `In ${seconds} s: ${describePending(pending)}`
}

function toPromptText(asking: Asking): string {
  switch (asking.step) {
    case 'reason':
      return `Reason for the denial: ${tail(asking.text)}`
    case 'covers':
      return 'Allow further calls: c same arguments, s some arguments the same, t any arguments'
    case 'same':
      return `Arguments that must stay the same, such as /repo: ${tail(asking.text)}`
    case 'calls':
      return `Number of further calls [${usual.calls}]: ${tail(asking.text)}`
    case 'minutes':
      return `Minutes until the grant expires [${usual.minutes}]: ${tail(asking.text)}`
  }
}

/** The end of the typed text, if it is too long for the line. */
function tail(text: string): string {
  const characters = [...text]
  return `${characters.length > 40 ? '…' : ''}${characters.slice(-40).join('')}_`
}

function toKeys({ asking, pending, shown }: Watch): string {
  if (asking) return 'Enter continue · Esc cancel · Ctrl+C quit'
  if (pending) return 'u undo · n next · p previous · q send and quit'
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
