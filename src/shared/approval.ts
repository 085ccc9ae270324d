import type { Approval } from '../contract/approval.ts'
import { eachText } from './json.ts'
import { countWarnings, describeWarnings } from './marks.ts'

/** One part of the request that an approved call sends to the server. */
export type SentPart = { readonly name: string; readonly value: unknown }

/**
 * Every part that an approved call sends, in the order in which page and terminal show it. A call must not send a part
 * that is missing in this list.
 */
export function sentParts({
  arguments: given,
  input,
  meta,
}: Pick<Approval, 'arguments' | 'input' | 'meta'>): SentPart[] {
  return [
    { name: 'arguments', value: given },
    ...(input === undefined ? [] : [{ name: 'additional data', value: input }]),
    ...(meta === undefined ? [] : [{ name: '_meta', value: meta }]),
  ]
}

/** The places in an approval that contain invisible or look-alike characters; undefined if there are none. */
export function describeSuspect(approval: Approval): string | undefined {
  const { title, tool, server, serverTitle = '', principal, description = '' } = approval
  const places: readonly (readonly [string, Iterable<string>])[] = [
    ...sentParts(approval).map(({ name, value }) => [`in the ${name}`, eachText(value)] as const),
    ['in the title', [title]],
    ['in the name of the tool', [tool]],
    ['in the name of the server', [server]],
    ['in the title of the server', [serverTitle]],
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
  other: 'a user other than the owner of the agent',
  owner: 'the owner of the agent, or an administrator',
  two: 'two people',
}

/** Describes who may answer, for one entry of `approvers`. */
export function describeApprover(approver: string): string {
  return approverWords[approver] ?? `a member of the ${approver.replace(':', ' ')}`
}

/**
 * Says whether a request of the agent waits for the answer. `complete`: the number includes the requests to all
 * instances.
 */
export function describeWaiting({ requests, complete }: { requests: number; complete: boolean }): string {
  if (requests > 0) return 'The agent is waiting for the answer.'
  const later = 'An approved call runs when the agent makes the same call again.'
  if (complete) return `No request is waiting for the answer at the moment. ${later}`
  return `No request to this gateway instance is waiting for the answer. Other instances were not checked. ${later}`
}
