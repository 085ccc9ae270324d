import { useState } from 'react'
import { describeSize, heightOf, sizeOf } from '../../../src/shared/size.ts'
import { Visible } from './Visible.tsx'

const mostCharacters = 300
const mostLines = 4

/** Text that is not part of the approved call: its beginning, and the rest after a click. */
export function Folded({ text }: { text: string }) {
  const [open, setOpen] = useState(false)
  const isLong = text.length > mostCharacters || heightOf(text, 80) > mostLines
  if (!isLong || open) {
    return (
      <span className="whitespace-pre-wrap [overflow-wrap:anywhere]">
        <Visible text={text} />
      </span>
    )
  }
  return (
    <>
      <span className="whitespace-pre-wrap [overflow-wrap:anywhere]">
        <Visible text={beginningOf(text, { characters: mostCharacters, lines: mostLines })} />…
      </span>{' '}
      <button type="button" className="text-accent underline" onClick={() => setOpen(true)}>
        Show all ({describeSize(sizeOf(text))})
      </button>
    </>
  )
}

export function beginningOf(text: string, most: { characters: number; lines: number }): string {
  return text.slice(0, most.characters).split('\n').slice(0, most.lines).join('\n')
}
