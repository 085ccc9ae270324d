import { type ReactNode, useState } from 'react'
import { Button } from '../parts/Button.tsx'
import { ScrollBox } from '../parts/ScrollBox.tsx'
import { Visible } from '../parts/Visible.tsx'
import { toChanges } from './changes.ts'

type ArgumentsProps = {
  value: unknown
  hash: string
  /** Long ones are shown whole. */
  whole: boolean
  onWhole(): void
}

/** Beyond these, a person is shown the beginning, and nothing is approved before the rest was opened. */
const mostCharacters = 1000
const mostFields = 20

/** Known shapes as fields, and below them every byte as it will be sent. */
export function Arguments({ value, hash, whole, onWhole }: ArgumentsProps) {
  const { fields, pair } = toShape(value)
  const shown = whole ? fields : fields.slice(0, mostFields)
  return (
    <section aria-label="Arguments" className="rounded-lg border border-line bg-panel">
      {fields.length === 0 && !pair && <p className="px-4 py-3 text-soft">It has no arguments.</p>}
      {shown.length > 0 && (
        <dl className="grid grid-cols-[minmax(5rem,max-content)_1fr] gap-x-4 px-4 py-2 max-md:grid-cols-1">
          {shown.map(([name, field]) => (
            <Field key={name} name={name}>
              <Value name={name} value={field} whole={whole} />
            </Field>
          ))}
        </dl>
      )}
      {pair && <Difference pair={pair} whole={whole} />}
      {!whole && isLong(value) && (
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2 border-line border-t px-4 py-3">
          <Button hint="O" onClick={onWhole}>
            Show all of it
          </Button>
          <span className="text-13 text-soft">
            This is the beginning; all together it is {toText(value).length.toLocaleString()} characters.
          </span>
        </div>
      )}
      <AsSent value={value} hash={hash} />
    </section>
  )
}

/** What is sent beside the arguments, whole: rare, and as much a part of what is approved. */
export function Along({ title, value }: { title: string; value: unknown }) {
  return (
    <section aria-label={title} className="mt-4 rounded-lg border border-line bg-panel">
      <h2 className="px-4 py-2 text-13 text-soft">{title}</h2>
      <ScrollBox label={title} className="max-h-96 px-4 pb-4">
        <Visible text={toText(value)} />
      </ScrollBox>
    </section>
  )
}

/** Whether there is more of it than is shown at first. */
export function isLong(value: unknown): boolean {
  const { fields, pair } = toShape(value)
  const texts = [...fields.map(([, field]) => toText(field)), ...(pair ? [pair.old, pair.new] : [])]
  return fields.length > mostFields || texts.some((text) => text.length > mostCharacters)
}

function AsSent({ value, hash }: { value: unknown; hash: string }) {
  const [open, setOpen] = useState(false)
  return (
    <details className="border-line border-t" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="px-4 py-2 text-13 text-soft">
        All arguments, exactly as they will be sent <span className="font-mono text-12">(sha {hash.slice(0, 8)}…)</span>
      </summary>
      {open && (
        <ScrollBox label="All arguments" className="max-h-96 px-4 pb-4">
          <Visible text={toText(value)} />
        </ScrollBox>
      )}
    </details>
  )
}

function Field({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="max-w-48 break-words py-1.5 text-soft max-md:max-w-full max-md:pb-0">
        <Visible text={name} />
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
      <span className={`break-words ${typeof value === 'string' ? '' : 'font-mono text-13'}`}>
        <Visible text={text} />
      </span>
    )
  }
  return <LongText label={`Value of ${name}`} text={text} whole={whole} />
}

function LongText({ label, text, whole }: { label: string; text: string; whole: boolean }) {
  const cut = !whole && text.length > mostCharacters
  return (
    <>
      <ScrollBox label={label} className="max-h-60 rounded-md bg-sunken p-2">
        <Visible text={cut ? text.slice(0, mostCharacters) : text} />
        {cut && '…'}
      </ScrollBox>
      <span className="text-12 text-soft">
        {cut && `${mostCharacters.toLocaleString()} of `}
        {text.length.toLocaleString()} characters
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

/** Old and new beside each other are read as a difference. */
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
  const most = whole ? undefined : mostCharacters
  return (
    <div className="border-line border-t px-4 py-2">
      <p className="mb-1 text-13 text-soft">
        {pair.before} → {pair.after}
      </p>
      <ScrollBox label="Difference" className="max-h-80 rounded-md bg-sunken p-2">
        {toChanges(pair.old.slice(0, most), pair.new.slice(0, most)).map(({ kind, line }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of one difference never change their places
          <div key={index} className={tones[kind]}>
            {marks[kind]} <Visible text={line} />
          </div>
        ))}
      </ScrollBox>
    </div>
  )
}

/** Text as it is, everything else as JSON, on one line where it fits. */
function toText(value: unknown): string {
  if (typeof value === 'string') return value
  const line = JSON.stringify(value) ?? 'null'
  return line.length <= longLine ? line : JSON.stringify(value, null, 2)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
