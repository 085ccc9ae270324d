import type { ReactNode } from 'react'
import { ScrollBox } from '../parts/ScrollBox.tsx'
import { Visible } from '../parts/Visible.tsx'
import { toChanges } from './changes.ts'

/** Known shapes as fields, and below them every byte as it will be sent. */
export function Arguments({ value, hash }: { value: unknown; hash: string }) {
  const fields = isRecord(value) ? Object.entries(value) : []
  const pair = findPair(fields)
  const shown = fields.filter(([name]) => name !== pair?.before && name !== pair?.after)
  const whole = JSON.stringify(value, null, 2) ?? 'null'
  return (
    <section aria-label="Arguments" className="rounded-lg border border-line bg-panel">
      {fields.length === 0 && <p className="px-4 py-3 text-soft">It has no arguments.</p>}
      {shown.length > 0 && (
        <dl className="grid grid-cols-[minmax(5rem,max-content)_1fr] gap-x-4 px-4 py-2">
          {shown.map(([name, field]) => (
            <Field key={name} name={name}>
              <Value value={field} />
            </Field>
          ))}
        </dl>
      )}
      {pair && <Difference pair={pair} />}
      <details className="border-line border-t">
        <summary className="px-4 py-2 text-13 text-soft">
          All arguments, exactly as they will be sent{' '}
          <span className="font-mono text-12">(sha {hash.slice(0, 8)}…)</span>
        </summary>
        <ScrollBox label="All arguments" className="max-h-96 px-4 pb-4">
          <Visible text={whole} />
        </ScrollBox>
      </details>
    </section>
  )
}

function Field({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="max-w-48 break-words py-1.5 text-soft">
        <Visible text={name} />
      </dt>
      <dd className="min-w-0 py-1.5">{children}</dd>
    </>
  )
}

const longText = 160

function Value({ value }: { value: unknown }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'null')
  if (text === '') return <span className="text-soft">empty text</span>
  if (text.length <= longText && !text.includes('\n')) {
    return (
      <span className={`break-words ${typeof value === 'string' ? '' : 'font-mono text-13'}`}>
        <Visible text={text} />
      </span>
    )
  }
  return (
    <>
      <ScrollBox label="Value" className="max-h-60 rounded-md bg-sunken p-2">
        <Visible text={text} />
      </ScrollBox>
      <span className="text-12 text-soft">{text.length.toLocaleString()} characters</span>
    </>
  )
}

type Pair = { before: string; after: string; old: string; new: string }

const pairs = [
  ['old_string', 'new_string'],
  ['oldString', 'newString'],
  ['old_text', 'new_text'],
  ['oldText', 'newText'],
  ['before', 'after'],
  ['old', 'new'],
] as const

/** Old and new beside each other are read as a difference. */
function findPair(fields: readonly [string, unknown][]): Pair | undefined {
  const texts = new Map(fields.filter((field): field is [string, string] => typeof field[1] === 'string'))
  for (const [before, after] of pairs) {
    const [old, fresh] = [texts.get(before), texts.get(after)]
    if (old !== undefined && fresh !== undefined) return { before, after, old, new: fresh }
  }
  return undefined
}

const marks = { same: ' ', added: '+', removed: '−' }
const tones = { same: '', added: 'bg-good-ground text-good', removed: 'bg-danger-ground text-danger' }

function Difference({ pair }: { pair: Pair }) {
  return (
    <div className="border-line border-t px-4 py-2">
      <p className="mb-1 text-13 text-soft">
        {pair.before} → {pair.after}
      </p>
      <ScrollBox label="Difference" className="max-h-80 rounded-md bg-sunken p-2">
        {toChanges(pair.old, pair.new).map(({ kind, line }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of one difference never change their places
          <div key={index} className={tones[kind]}>
            {marks[kind]} <Visible text={line} />
          </div>
        ))}
      </ScrollBox>
    </div>
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
