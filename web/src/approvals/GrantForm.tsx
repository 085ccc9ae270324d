import { useId, useState } from 'react'
import type { ApprovalDetail } from '../../../src/contract/approval.ts'
import type { GrantWish } from '../../../src/contract/grant.ts'
import { toClock } from '../../../src/shared/time.ts'
import { Button } from '../parts/Button.tsx'
import { Visible } from '../parts/Visible.tsx'
import { nameOf } from './words.ts'

type GrantFormProps = { approval: ApprovalDetail; onCancel(): void; onGrant(grant: GrantWish): void }

const spans: readonly [minutes: number, words: string][] = [
  [15, '15 minutes'],
  [60, '1 hour'],
  [480, '8 hours'],
  [1440, '1 day'],
  [10_080, '1 week'],
]

/** Chooses the limits of a grant, and shows them as one sentence. */
export function GrantForm({ approval, onCancel, onGrant }: GrantFormProps) {
  const choices = scalarsOf(approval.arguments)
  const [covers, setCovers] = useState<GrantWish['covers']>(choices.length > 0 ? 'shape' : 'tool')
  const [same, setSame] = useState<ReadonlySet<string>>(new Set(usuallySame(choices)))
  const [budget, setBudget] = useState(5)
  const [minutes, setMinutes] = useState(60)
  const valid = Number.isInteger(budget) && budget >= 1 && budget <= 10_000 && (covers !== 'shape' || same.size > 0)
  const toggle = (pointer: string) =>
    setSame((known) => {
      const next = new Set(known)
      if (!next.delete(pointer)) next.add(pointer)
      return next
    })
  const radio = (value: GrantWish['covers'], words: string) => (
    <label className="flex items-center gap-2 py-1">
      <input
        type="radio"
        name="covers"
        // biome-ignore lint/a11y/noAutofocus: the person just asked for this form
        autoFocus={covers === value}
        checked={covers === value}
        onChange={() => setCovers(value)}
      />{' '}
      {words}
    </label>
  )
  return (
    <form
      aria-label="Approve and allow more"
      className="rounded-lg border border-line bg-panel p-4"
      onKeyDown={(event) => event.key === 'Escape' && onCancel()}
      onSubmit={(event) => {
        event.preventDefault()
        if (valid) onGrant({ covers, budget, minutes, ...(covers === 'shape' && { same: [...same] }) })
      }}
    >
      <fieldset className="mb-3">
        <legend className="mb-1 text-13 text-soft">Allow without further approval</legend>
        {radio('call', 'exactly this call')}
        {choices.length > 0 && radio('shape', 'calls with the same')}
        {covers === 'shape' && (
          <div className="mb-1 ml-6 flex flex-wrap gap-x-4">
            {choices.map(({ pointer, name, text }) => (
              <label key={pointer} className="flex min-w-0 items-center gap-2 py-1">
                <input type="checkbox" checked={same.has(pointer)} onChange={() => toggle(pointer)} />
                <span className="truncate">
                  <Visible text={name} />{' '}
                  <span className="text-soft">
                    <Visible text={text} />
                  </span>
                </span>
              </label>
            ))}
          </div>
        )}
        {radio('tool', 'calls of this tool with any arguments')}
      </fieldset>
      <div className="mb-3 flex flex-wrap gap-4">
        <Labelled label="Number of calls">
          {(id) => (
            <input
              id={id}
              type="number"
              min={1}
              max={10_000}
              value={Number.isNaN(budget) ? '' : budget}
              onChange={(event) => setBudget(event.target.valueAsNumber)}
              className="h-9 w-24 border border-line bg-ground px-2 max-md:h-11"
            />
          )}
        </Labelled>
        <Labelled label="Valid for">
          {(id) => (
            <select
              id={id}
              value={minutes}
              onChange={(event) => setMinutes(Number(event.target.value))}
              className="h-9 border border-line bg-ground px-2 max-md:h-11"
            >
              {spans.map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Labelled>
      </div>
      <p className="mb-3 rounded-md bg-accent-ground px-3 py-2">
        <output>
          <Visible
            text={toSentence(approval, {
              covers,
              same: choices.filter(({ pointer }) => same.has(pointer)),
              budget,
              minutes,
            })}
          />
        </output>
      </p>
      <div className="flex gap-2 max-md:flex-col">
        <Button type="submit" tone="main" disabled={!valid}>
          Approve and allow
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </form>
  )
}

function Labelled({ label, children }: { label: string; children(id: string): React.ReactNode }) {
  const id = useId()
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-13 text-soft">
        {label}
      </label>
      {children(id)}
    </div>
  )
}

type Choice = { readonly pointer: string; readonly name: string; readonly text: string }

/** Simple top-level values, by which a person recognises a call. */
function scalarsOf(value: unknown): Choice[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value)
    .filter(([, field]) => ['string', 'number', 'boolean'].includes(typeof field) && String(field).length <= 200)
    .slice(0, 20)
    .map(([name, field]) => ({
      pointer: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      name,
      text: String(field),
    }))
}

const places =
  /^(owner|org|organization|repo|repository|project|channel|table|database|collection|bucket|folder|directory|workspace|board|team|namespace)$/i

/** Arguments that name a place, such as a repository, usually stay the same. */
function usuallySame(choices: readonly Choice[]): string[] {
  const found = choices.filter(({ name }) => places.test(name))
  return (found.length > 0 ? found : choices.slice(0, 1)).map(({ pointer }) => pointer)
}

type Sentence = Pick<GrantWish, 'covers' | 'budget' | 'minutes'> & { same: readonly Choice[] }

function toSentence(approval: ApprovalDetail, { covers, same, budget, minutes }: Sentence): string {
  const now = new Date()
  const until = toClock(new Date(now.getTime() + minutes * 60_000), now)
  const times = budget === 1 ? 'once' : `${budget} times`
  const which = {
    call: ' with exactly these arguments',
    shape: ` with ${same.map(({ name, text }) => `${name} ${text}`).join(' and ')}`,
    tool: ' with any arguments',
  }[covers]
  return `${nameOf(approval.principal)} may use ${approval.tool}${which}, ${times} more, until ${until}.`
}
