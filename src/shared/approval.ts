import type { Approval } from '../contract/approval.ts'
import { eachText } from './json.ts'
import { countWarnings, describeWarnings } from './marks.ts'

/** One of the things that are sent when a call is approved. */
export type SentPart = { readonly name: string; readonly value: unknown }

/** All that is sent, in the order in which page and terminal show it. Nothing is approved that is not in this list. */
export function sentParts({
  arguments: given,
  input,
  meta,
}: Pick<Approval, 'arguments' | 'input' | 'meta'>): SentPart[] {
  return [
    { name: 'arguments', value: given },
    ...(input === undefined ? [] : [{ name: 'data that goes along', value: input }]),
    ...(meta === undefined ? [] : [{ name: '_meta', value: meta }]),
  ]
}

/** Where an approval has invisible or look-alike characters; undefined where it has none. */
export function describeSuspect(approval: Approval): string | undefined {
  const { title, tool, server, principal, description = '' } = approval
  const places: readonly (readonly [string, Iterable<string>])[] = [
    ...sentParts(approval).map(({ name, value }) => [`in the ${name}`, eachText(value)] as const),
    ['in the title', [title]],
    ['in the name of the tool', [tool]],
    ['in the name of the server', [server]],
    ['in the name of the caller', [principal]],
    ["in the tool's description", [description]],
  ]
  const found = places.flatMap(([place, texts]) => {
    const words = describeWarnings(countWarnings(texts))
    return words === undefined ? [] : [`${words} ${place}`]
  })
  return found.length === 0 ? undefined : found.join('; ')
}

const approverWords: Readonly<Record<string, string>> = {
  any: 'the owner of the agent, or an administrator',
  client: "also the person at the agent's own program",
  other: 'somebody else than the owner of the agent',
  owner: 'the owner of the agent, or an administrator',
  two: 'two people',
}

/** Who may answer, for one entry of `approvers`. */
export function describeApprover(approver: string): string {
  return approverWords[approver] ?? `somebody of the ${approver.replace(':', ' ')}`
}

/** Whether somebody waits for the answer at this moment, as far as it is known. */
export function describeWaiting({ requests, complete }: { requests: number; complete: boolean }): string {
  if (requests > 0) return 'The agent is waiting for the answer.'
  const later = 'An approved call runs when the agent makes the same call again.'
  if (complete) return `No request is waiting for the answer at the moment. ${later}`
  return `No request to this instance is waiting for the answer; others may be. ${later}`
}
