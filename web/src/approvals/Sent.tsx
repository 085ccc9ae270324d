import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { type SentPart, sentParts } from '../../../src/shared/approval.ts'
import { toReadableJson } from '../../../src/shared/json.ts'
import { diffLines } from '../../../src/shared/line-difference.ts'
import { describeSize, heightOf, sizeOf } from '../../../src/shared/size.ts'
import { Button } from '../parts/Button.tsx'
import { EndMark } from '../parts/EndMark.tsx'
import { beginningOf } from '../parts/Folded.tsx'
import { TextBlock } from '../parts/TextBlock.tsx'
import { Visible } from '../parts/Visible.tsx'

type SentProps = {
  approval: Parameters<typeof sentParts>[0]
  hash: string
  /** Show everything, not only the beginning. */
  whole: boolean
  /** The person has just opened the full text, so scroll to its beginning. */
  opened: boolean
  onWhole(): void
  /** Called when the end of the text was visible. */
  onSeen(): void
}

/** Longer arguments are cut at first, and cannot be approved before the person has opened the rest. */
const most = { characters: 1000, lines: 10, fields: 12, name: 60, height: 24 }
/** Approximate characters per line on a phone. */
const columns = 44

/** All arguments: known shapes as fields, and below them the complete JSON. `sentParts` lists the parts. */
export function Sent({ approval, hash, whole, opened, onWhole, onSeen }: SentProps) {
  const parts = sentParts(approval)
  const start = useRef<HTMLDivElement>(null)
  // Before the check for the end of the text: if the page is scrolled down, the end may be visible although nothing was read.
  useLayoutEffect(() => {
    if (opened) start.current?.scrollIntoView({ block: 'start' })
  }, [opened])
  return (
    <>
      <div ref={start} />
      {parts.map((part) => (
        <Part key={part.name} part={part} whole={whole} />
      ))}
      {!whole && (
        <div className="mb-4 flex flex-wrap items-center gap-x-4 gap-y-2 rounded-lg border border-write bg-write-ground px-4 py-3">
          <Button hint="O" onClick={onWhole}>
            Show everything
          </Button>
          <span className="text-13 text-write">
            Only the beginning is shown. Complete size: {describeSize(sizeOf(parts.map(toPartText).join('\n')))}.
          </span>
        </div>
      )}
      {whole && <EndMark onSeen={onSeen} />}
      <AsSent parts={parts} hash={hash} />
    </>
  )
}

/** Whether the arguments are cut at first, because of their length, height, number of fields or long names. */
export function isLong(approval: SentProps['approval']): boolean {
  let height = 0
  for (const { value } of sentParts(approval)) {
    const { fields, pair } = toShape(value)
    if (fields.length > most.fields || fields.some(([name]) => name.length > most.name)) return true
    const texts = [...fields.map(([, field]) => toText(field)), ...(pair ? [pair.old, pair.new] : [])]
    if (texts.some((text) => text.length > most.characters)) return true
    const heights = texts.map((text) => heightOf(text, columns))
    if (heights.some((each) => each > most.lines)) return true
    height += heights.reduce((sum, each) => sum + each, 0)
  }
  return height > most.height
}

function Part({ part: { name, value }, whole }: { part: SentPart; whole: boolean }) {
  const { fields, pair } = toShape(value)
  const shown = whole ? fields : fields.slice(0, most.fields)
  const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
  return (
    <section aria-label={title} className="mb-4 rounded-lg border border-line bg-panel">
      <h2 className="px-4 pt-2 text-13 text-soft">{title}</h2>
      {fields.length === 0 && !pair && <p className="px-4 py-3 text-soft">No {name}.</p>}
      {shown.length > 0 && (
        <dl className="grid grid-cols-[minmax(5rem,max-content)_1fr] gap-x-4 px-4 py-2 max-md:grid-cols-1">
          {shown.map(([key, field]) => (
            <Field key={key} name={whole ? key : key.slice(0, most.name)} cut={!whole && key.length > most.name}>
              <Value name={key} value={field} whole={whole} />
            </Field>
          ))}
        </dl>
      )}
      {shown.length < fields.length && (
        <p className="px-4 pb-2 text-13 text-write">
          {(fields.length - shown.length).toLocaleString('en')} more, of {fields.length.toLocaleString('en')}
        </p>
      )}
      {pair && <Difference pair={pair} whole={whole} />}
    </section>
  )
}

function AsSent({ parts, hash }: { parts: readonly SentPart[]; hash: string }) {
  const [open, setOpen] = useState(false)
  return (
    <details className="rounded-lg border border-line bg-panel" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="px-4 py-2 text-13 text-soft">
        All arguments, exactly as they will be sent <span className="font-mono text-12">(sha {hash.slice(0, 8)}…)</span>
      </summary>
      {open && (
        <div className="px-4 pb-4">
          {parts.map((part) => (
            <TextBlock key={part.name} label={`All ${part.name}`}>
              <Visible text={toReadableJson(part.value)} />
            </TextBlock>
          ))}
        </div>
      )}
    </details>
  )
}

function Field({ name, cut, children }: { name: string; cut: boolean; children: ReactNode }) {
  return (
    <>
      <dt className="max-w-48 py-1.5 text-soft [overflow-wrap:anywhere] max-md:max-w-full max-md:pb-0">
        {name === '' ? <i>no name</i> : <Visible text={name} />}
        {cut && '…'}
      </dt>
      <dd className="min-w-0 py-1.5 max-md:pt-0">{children}</dd>
    </>
  )
}

const longLine = 160

function Value({ name, value, whole }: { name: string; value: unknown; whole: boolean }) {
  const text = toText(value)
  if (text === '') return <span className="text-soft">empty text</span>
  if (text.length <= longLine && !text.includes('\n')) {
    return (
      <span
        className={`whitespace-pre-wrap [overflow-wrap:anywhere] ${typeof value === 'string' ? '' : 'font-mono text-13'}`}
      >
        <Visible text={text} />
      </span>
    )
  }
  return <LongText label={`Value of ${name.slice(0, most.name)}`} text={text} whole={whole} />
}

function LongText({ label, text, whole }: { label: string; text: string; whole: boolean }) {
  const shown = whole ? text : beginningOf(text, most)
  const isCut = shown.length < text.length
  return (
    <>
      <TextBlock label={label}>
        <Visible text={shown} />
        {isCut && '…'}
      </TextBlock>
      <span className={`text-12 ${isCut ? 'text-write' : 'text-soft'}`}>
        {isCut && 'Beginning of '}
        {describeSize(sizeOf(text))}
      </span>
    </>
  )
}

type Pair = { before: string; after: string; old: string; new: string }
type Shape = { fields: readonly [string, unknown][]; pair: Pair | undefined }

const pairs = [
  ['old_string', 'new_string'],
  ['oldString', 'newString'],
  ['old_text', 'new_text'],
  ['oldText', 'newText'],
  ['before', 'after'],
  ['old', 'new'],
] as const

/** Arguments with an old and a new text are shown as a difference. */
function toShape(value: unknown): Shape {
  if (value === undefined || value === null) return { fields: [], pair: undefined }
  if (!isRecord(value)) return { fields: [['value', value]], pair: undefined }
  const fields = Object.entries(value)
  const texts = new Map(fields.filter((field): field is [string, string] => typeof field[1] === 'string'))
  for (const [before, after] of pairs) {
    const [old, fresh] = [texts.get(before), texts.get(after)]
    if (old === undefined || fresh === undefined) continue
    const others = fields.filter(([name]) => name !== before && name !== after)
    return { fields: others, pair: { before, after, old, new: fresh } }
  }
  return { fields, pair: undefined }
}

const marks = { same: ' ', added: '+', removed: '−' }
const tones = { same: '', added: 'bg-good-ground text-good', removed: 'bg-danger-ground text-danger' }

function Difference({ pair, whole }: { pair: Pair; whole: boolean }) {
  const cut = (text: string) => (whole ? text : beginningOf(text, most))
  const isCut = cut(pair.old) !== pair.old || cut(pair.new) !== pair.new
  return (
    <div className="border-line border-t px-4 py-2">
      <p className="mb-1 text-13 text-soft">
        {pair.before} → {pair.after}
      </p>
      <TextBlock label="Difference">
        {diffLines(cut(pair.old).split('\n'), cut(pair.new).split('\n')).map(({ kind, line }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of one difference never change their places
          <div key={index} className={tones[kind]}>
            {marks[kind]} <Visible text={line} />
          </div>
        ))}
      </TextBlock>
      <span className={`text-12 ${isCut ? 'text-write' : 'text-soft'}`}>
        {isCut && 'Beginning of '}
        {describeSize(sizeOf(pair.old))} → {describeSize(sizeOf(pair.new))}
      </span>
    </div>
  )
}

/** Text unchanged, other values as JSON, on one line if it fits. */
function toText(value: unknown): string {
  if (typeof value === 'string') return value
  const line = JSON.stringify(value) ?? 'null'
  return line.length <= longLine ? line : toReadableJson(value)
}

function toPartText({ value }: SentPart): string {
  return toShape(value)
    .fields.map(([name, field]) => `${name}\n${toText(field)}`)
    .concat(Object.values(toShape(value).pair ?? {}))
    .join('\n')
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
