import type { Approval, ApprovalDetail, ApprovalDrift, ApprovalState } from '../../../contract/approval.ts'
import type { GrantWish } from '../../../contract/grant.ts'
import { describeApprover, describeSuspect, describeWaiting, sentParts } from '../../../shared/approval.ts'
import { toReadableJson } from '../../../shared/json.ts'
import { describeSize, findBlankRuns, sizeOf } from '../../../shared/size.ts'
import { toRelative } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import { renderFacts } from '../../terminal/words.ts'

export type Fact = readonly [name: string, value: string | undefined]

/** All that a person has to know, and every byte of what is sent. Warnings are last, where a terminal ends. */
export function renderApproval(approval: Approval | ApprovalDetail, now: number): string {
  const suspect = toSuspectLine(approval)
  const parts = [
    toVisible(approval.title),
    renderFacts(toFacts(approval, now)),
    ...(approval.description ? [`what the tool says it does\n${indent(toVisible(approval.description))}`] : []),
    ...('drift' in approval && approval.drift ? [renderDrift(approval.drift)] : []),
    ...toSentTexts(approval).map(({ heading, text }) => `${heading}\n${indent(text)}`),
    ...('around' in approval ? renderAround(approval, now) : []),
    ...('waiting' in approval && approval.state === 'waiting' ? [describeWaiting(approval.waiting)] : []),
    ...(suspect === undefined ? [] : [suspect]),
  ]
  return parts.join('\n\n')
}

export const driftWords: Readonly<Record<ApprovalDrift['kind'], string>> = {
  changed: 'what changed in the definition of the tool since it was accepted',
  new: 'the definition of the tool, which nobody has accepted yet',
}

function renderDrift({ kind, difference }: ApprovalDrift): string {
  return `${driftWords[kind]}\n${indent(toVisible(difference))}`
}

export function toFacts(approval: Approval, now: number): Fact[] {
  const { state, principal, owner, reason, approvers, answers } = approval
  return [
    ['risk', approval.risk],
    ['tool', `${approval.tool} of the server ${approval.server}`],
    [
      'asked by',
      owner === undefined || principal === `user:${owner}` ? principal : `${principal}, on behalf of ${owner}`,
    ],
    ['why', reason],
    ['may answer', approvers.map(describeApprover).join('; ')],
    ['state', stateWords[state]],
    ['withdrawn because', approval.withdrawnBecause],
    ...answers.map((answer): Fact => [answer.verdict === 'deny' ? 'denied by' : 'approved by', toSaid(answer, now)]),
    ['asked', toRelative(approval.askedAt, now)],
    ['expires', state === 'waiting' ? `${toRelative(approval.expiresAt, now)}, ${approval.expiresAt}` : undefined],
    ['grant', approval.grant],
    ['question', approval.id],
    ['call', approval.call],
  ]
}

export const stateWords: Readonly<Record<ApprovalState, string>> = {
  waiting: 'waiting for an answer',
  approved: 'approved, not used yet',
  used: 'approved, and it ran',
  lapsed: 'lapsed: approved, and the same call was not made again in time',
  denied: 'denied',
  expired: 'expired: nobody answered in time',
  withdrawn: 'withdrawn: what was asked for cannot run any more',
}

export type SentText = { readonly heading: string; readonly text: string }

/** JSON, so that nothing in a value can look like another one; marked characters and long blanks are written out. */
export function toSentTexts(approval: Approval): SentText[] {
  return sentParts(approval).map(({ name, value }) => {
    const text = value === undefined ? 'none' : toReadableJson(value)
    return { heading: `${name} (${describeSize(sizeOf(text))})`, text: withoutBlankRuns(toVisible(text)) }
  })
}

/** Blanks inside a value would push its end out of sight; JSON has no other place for so many of them. */
function withoutBlankRuns(text: string): string {
  let end = 0
  const pieces: string[] = []
  for (const { index, text: run, words } of findBlankRuns(text)) {
    pieces.push(text.slice(end, index), `\\u{20}(${words})`)
    end = index + run.length
  }
  return [...pieces, text.slice(end)].join('')
}

export function toSuspectLine(approval: Approval): string | undefined {
  const words = describeSuspect(approval)
  return words === undefined ? undefined : `Look closely: ${words}.`
}

/** `3 more calls of files_write within 30 minutes, with exactly these arguments` */
export function describeWish(tool: string, { covers, same = [], budget, minutes }: GrantWish): string {
  const calls = budget === 1 ? '1 more call' : `${budget} more calls`
  const time = minutes === 1 ? '1 minute' : `${minutes} minutes`
  const which = {
    call: 'with exactly these arguments',
    shape: `with the same ${same.join(' and ')}`,
    tool: 'with any arguments',
  }[covers]
  return `${calls} of ${tool} within ${time}, ${which}`
}

/** What an answer has brought about. */
export function describeAnswered({ state, title, answers, grant }: Approval): string {
  if (state === 'denied') return `Denied: ${title}. The agent is told why.`
  if (state === 'waiting') return `${answers.at(-1)?.by ?? 'Somebody'} approved: ${title}. It needs one more person.`
  const more = grant === undefined ? '' : ` Calls like it are permitted by ${grant}.`
  return `Approved: ${title}. It runs once, for whoever waits for it.${more}`
}

function toSaid({ by, at, reason }: Approval['answers'][number], now: number): string {
  return `${by}, ${toRelative(at, now)}${reason ? `: ${reason}` : ''}`
}

function renderAround({ before, around }: ApprovalDetail, now: number): string[] {
  const earlier =
    before.asked === 0 ? 'Asked for the first time.' : `Approved ${before.approved} of ${before.asked} times before.`
  const calls = around.map((call) => `${call.tool}  ${call.state}  ${toRelative(call.startedAt, now)}`)
  return [earlier, ...(calls.length > 0 ? [`shortly before\n${indent(toVisible(calls.join('\n')))}`] : [])]
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}
