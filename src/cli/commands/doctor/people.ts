import type { PinState } from '../../../contract/pin.ts'
import { countOf } from '../../../shared/words.ts'
import type { Context } from '../command.ts'
import { type Finding, note, warning } from './finding.ts'

/** Checks that an administrator exists, and lists tool definitions that need a decision. Skipped without permission. */
export async function checkPeople(request: Context['request']): Promise<Finding[]> {
  const [users, pins] = await Promise.all([
    request('Listing users', (client) => client.users.list()).catch(() => undefined),
    request('Listing pins', (client) => client.pins.list({ state: undecided })).catch(() => undefined),
  ])
  const findings: Finding[] = []
  if (users && !users.items.some(({ role, disabledAt }) => role === 'administrator' && !disabledAt))
    findings.push(
      warning(
        'people',
        'No administrator can sign in, so waiting approvals cannot be answered',
        'sallyport setup-link, then open the printed link',
      ),
    )
  const tools = pins?.items.filter(({ kind }) => kind === 'tool').map(({ name }) => name) ?? []
  if (tools.length > 0)
    findings.push(
      note('definitions', `${countOf(tools.length, 'tool')} to review: ${shorten(tools)}`, 'sallyport tools pins'),
    )
  return findings
}

const undecided: PinState[] = ['changed', 'new', 'suspicious']

function shorten(names: readonly string[]): string {
  return names.length > 5 ? `${names.slice(0, 5).join(', ')}, …` : names.join(', ')
}
