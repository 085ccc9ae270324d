import type { Approval, ApprovalDetail, ApprovalDrift, ApprovalState } from '../../../contract/approval.ts'
import type { GrantWish } from '../../../contract/grant.ts'
import { describeApprover, describeSuspect, describeWaiting, sentParts } from '../../../shared/approval.ts'
import { toReadableJson } from '../../../shared/json.ts'
import { describeSize, findBlankRuns, sizeOf } from '../../../shared/size.ts'
import { toRelative } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import { renderFacts } from '../../terminal/words.ts'

export type Fact = readonly [name: string, value: string | undefined]

/** The approval with all arguments. Warnings are last, because the end of the output is what a terminal shows. */
export function renderApproval(approval: Approval | ApprovalDetail, now: number): string {
  const suspect = toSuspectLine(approval)
  const parts = [
    toVisible(approval.title),
    renderFacts(toFacts(approval, now)),
    ...(approval.description ? [`description of the tool\n${indent(toVisible(approval.description))}`] : []),
    ...('drift' in approval && approval.drift ? [renderDrift(approval.drift)] : []),
    ...toSentTexts(approval).map(({ heading, text }) => `${heading}\n${indent(text)}`),
    ...('recentCalls' in approval ? renderHistory(approval, now) : []),
    ...('waiting' in approval && approval.state === 'waiting' ? [describeWaiting(approval.waiting)] : []),
    ...(suspect === undefined ? [] : [suspect]),
  ]
  return parts.join('\n\n')
}

export const driftWords: Readonly<Record<ApprovalDrift['kind'], string>> = {
  changed: 'changes in the definition of the tool since it was accepted',
  new: 'definition of the tool, not accepted yet',
}

function renderDrift({ kind, difference }: ApprovalDrift): string {
  return `${driftWords[kind]}\n${indent(toVisible(difference))}`
}

export function toFacts(approval: Approval, now: number): Fact[] {
  const { state, principal, owner, reason, approvers, answers } = approval
  return [
    ['risk', approval.risk],
    ['tool', `${approval.tool} of the server ${approval.server}`],
    ['server title', approval.serverTitle],
    [
      'called by',
      owner === undefined || principal === `user:${owner}` ? principal : `${principal}, on behalf of ${owner}`,
    ],
    ['why', reason],
    ['can answer', approvers.map(describeApprover).join('; ')],
    ['state', stateWords[state]],
    ['withdrawn because', approval.withdrawnBecause],
    ...answers.map((answer): Fact => [answer.verdict === 'deny' ? 'denied by' : 'approved by', toSaid(answer, now)]),
    ['requested', toRelative(approval.requestedAt, now)],
    ['expires', state === 'waiting' ? `${toRelative(approval.expiresAt, now)}, ${approval.expiresAt}` : undefined],
    ['grant', approval.grant],
    ['approval', approval.id],
    ['call', approval.call],
  ]
}

export const stateWords: Readonly<Record<ApprovalState, string>> = {
  waiting: 'waiting for an answer',
  approved: 'approved, not used yet',
  used: 'approved, and the call ran',
  lapsed: 'lapsed: approved, but the call was not repeated in time',
  denied: 'denied',
  expired: 'expired: nobody answered in time',
  withdrawn: 'withdrawn: the call can no longer run',
}

export type SentText = { readonly heading: string; readonly text: string }

/** As JSON, so that one value cannot look like another; invisible characters and long runs of blanks are written out. */
export function toSentTexts(approval: Approval): SentText[] {
  return sentParts(approval).map(({ name, value }) => {
    const text = value === undefined ? 'none' : toReadableJson(value)
    return { heading: `${name} (${describeSize(sizeOf(text))})`, text: withoutBlankRuns(toVisible(text)) }
  })
}

/** Long runs of blanks inside a value could push its end out of view. */
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
  const calls = countOf(budget, 'more call')
  const time = countOf(minutes, 'minute')
  const which = {
    call: 'with exactly these arguments',
    shape: `with the same ${same.join(' and ')}`,
    tool: 'with any arguments',
  }[covers]
  return `${calls} of ${tool} within ${time}, ${which}`
}

export function describeAnswered({ state, title, answers, grant }: Approval): string {
  if (state === 'denied') return `Denied: ${title}. The agent gets the reason.`
  if (state === 'waiting')
    return `${answers.at(-1)?.by ?? 'A person'} approved: ${title}. A second person must approve it.`
  const more = grant === undefined ? '' : ` The grant ${grant} allows further calls.`
  return `Approved: ${title}. The call runs once.${more}`
}

function toSaid({ by, at, reason }: Approval['answers'][number], now: number): string {
  return `${by}, ${toRelative(at, now)}${reason ? `: ${reason}` : ''}`
}

function renderHistory({ earlier, recentCalls }: ApprovalDetail, now: number): string[] {
  const before =
    earlier.requested === 0
      ? 'First approval for this agent and tool.'
      : `Approved ${earlier.approved} of ${earlier.requested} times before.`
  const calls = recentCalls.map((call) => `${call.tool}  ${call.state}  ${toRelative(call.startedAt, now)}`)
  return [before, ...(calls.length > 0 ? [`recent calls\n${indent(toVisible(calls.join('\n')))}`] : [])]
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}
