import type { PinState } from '../../../contract/pin.ts'
import type { Context } from '../command.ts'
import { type Finding, note, warning } from './finding.ts'

/** What only people can do, and whether there is anybody. Who may not look is told nothing. */
export async function checkPeople(request: Context['request']): Promise<Finding[]> {
  const [users, pins] = await Promise.all([
    request('Asking for users', (client) => client.users.list()).catch(() => undefined),
    request('Asking for definitions', (client) => client.pins.list({ state: undecided })).catch(() => undefined),
  ])
  const findings: Finding[] = []
  if (users && !users.items.some(({ role, disabledAt }) => role === 'administrator' && !disabledAt))
    findings.push(
      warning(
        'people',
        'Nobody can sign in, so that nobody answers a call that waits',
        'sallyport setup-link, then open the link that it prints',
      ),
    )
  const tools = pins?.items.filter(({ kind }) => kind === 'tool').map(({ name }) => name) ?? []
  if (tools.length > 0)
    findings.push(
      note('definitions', `${toCount(tools.length)} for a person: ${shorten(tools)}`, 'sallyport tools pins'),
    )
  return findings
}

const undecided: PinState[] = ['changed', 'new', 'suspicious']

function toCount(waiting: number): string {
  return waiting === 1 ? 'The definition of 1 tool waits' : `The definitions of ${waiting} tools wait`
}

function shorten(names: readonly string[]): string {
  return names.length > 5 ? `${names.slice(0, 5).join(', ')}, …` : names.join(', ')
}
