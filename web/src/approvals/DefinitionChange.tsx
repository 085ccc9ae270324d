import type { ApprovalDetail } from '../../../src/contract/approval.ts'
import { TextBlock } from '../parts/TextBlock.tsx'
import { Visible } from '../parts/Visible.tsx'

const headings = {
  changed: 'The server changed this tool. The change has not been accepted',
  new: 'This tool is new and has not been accepted',
}

/** The difference between the accepted and the current definition, line by line. */
export function DefinitionChange({ drift }: Pick<ApprovalDetail, 'drift'>) {
  if (!drift) return null
  return (
    <section aria-label="Tool change" className="mb-4 rounded-lg border border-write bg-panel px-4 pb-4">
      <h2 className="py-2 font-medium text-13 text-write">{headings[drift.kind]}</h2>
      <TextBlock label="Difference, line by line">
        {drift.difference.split('\n').map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one text never change their places
          <span key={index} className={`block ${toTone(line)}`}>
            <Visible text={line} />
          </span>
        ))}
      </TextBlock>
    </section>
  )
}

/** The colour repeats the + or - at the start of the line. */
function toTone(line: string): string {
  if (line.startsWith('  + ')) return 'bg-good-ground text-good'
  return line.startsWith('  - ') ? 'bg-danger-ground text-danger' : 'text-soft'
}
