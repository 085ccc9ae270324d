import type { Replay, RuleScope, RuleTest, ShownRule } from '../../contract/api/rules.ts'
import type { RuleAction } from '../../contract/rule.ts'
import { toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { renderTable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { renderFacts } from '../terminal/words.ts'

function paintAction({ colours }: Terminal, action: RuleAction): (text: string) => string {
  return { allow: colours.green, ask: colours.yellow, deny: colours.red }[action]
}

export function renderRules(terminal: Terminal, scopes: readonly RuleScope[]): string {
  if (scopes.length === 0) return 'No rules. Tools of risk read are allowed, all other tools require approval.'
  const rows = scopes.flatMap(({ scope, rules }) => rules.map((rule) => ({ scope, rule })))
  return renderTable(
    rows,
    [
      { title: 'scope', value: ({ scope }) => scope },
      { title: 'rule', value: ({ rule }) => String(rule.index + 1) },
      {
        title: 'action',
        value: ({ rule }) => rule.action,
        paint: (text, { rule }) => paintAction(terminal, rule.action)(text),
      },
      { title: 'for', value: ({ rule }) => toWhat(rule), shrinks: true },
      { title: 'name', value: ({ rule }) => rule.name ?? '', shrinks: true, drops: 1 },
      { title: 'until', value: ({ rule }) => (rule.expired ? 'expired' : toRelative(rule.expires, Date.now())) },
    ],
    terminal.width,
  )
}

/** The conditions of a rule in one line. */
function toWhat(rule: ShownRule): string {
  const facts = [
    [rule.tools].flat().join(' or '),
    rule.server && `server ${rule.server}`,
    rule.risk && [rule.risk].flat().join(' or '),
    rule.principal && `of ${rule.principal}`,
    rule.owner && `owner ${rule.owner}`,
    rule.project && `project ${rule.project}`,
    ...Object.entries(rule.arguments ?? {}).map(([pointer, test]) => `${pointer} ${JSON.stringify(test)}`),
  ]
  return facts.filter(Boolean).join(', ')
}

export function renderTest(terminal: Terminal, tested: RuleTest): string {
  const facts = renderFacts([
    ['tool', tested.known ? tested.tool : `${tested.tool} (does not exist yet)`],
    ['server', tested.server],
    ['risk', `${tested.risk} (from ${tested.riskFrom})`],
    ['principal', tested.principal],
    ['owner', tested.owner],
    ['project', tested.project],
    ['because', tested.because],
    ['approvers', tested.action === 'ask' ? tested.approvers.join(' and ') : undefined],
  ])
  const answer = paintAction(terminal, tested.action)(tested.action)
  return [`answer     ${answer}`, facts, ...tested.scopes.map((scope) => renderScope(terminal, scope))].join('\n')
}

function renderScope(terminal: Terminal, scoped: RuleTest['scopes'][number]): string {
  const { scope, action, rules } = scoped
  const weak = scoped.onlyTightens && action === 'allow' ? ', which this scope cannot do' : ''
  const says = action === undefined ? 'has no matching rule' : `says ${paintAction(terminal, action)(action)}${weak}`
  const lines = rules.map((rule) => {
    const name = rule.name === undefined ? '' : ` "${toVisible(rule.name)}"`
    const how = rule.decides ? 'decides' : 'matches, but a later rule decides'
    const why = rule.matches ? how : `does not match: ${toVisible(rule.mismatch?.because ?? '')}`
    return `  rule ${rule.index + 1}${name} ${rule.action}: ${why}`
  })
  return [`${toVisible(scope)} ${says}`, ...lines].join('\n')
}

export function renderReplay(terminal: Terminal, replayed: Replay): string {
  const { looked, changed, uncertain, summary, items } = replayed
  const sums = Object.entries(summary).map(([way, count]) => `  ${way}: ${count}`)
  const doubt =
    uncertain === 0 ? [] : [`  uncertain: ${uncertain}, because the audit has an argument only in masked form`]
  const head = [`${changed} of ${looked} past calls would be decided differently.`, ...sums, ...doubt].join('\n')
  if (items.length === 0) return head
  const table = renderTable(
    items,
    [
      { title: 'started', value: (item) => toRelative(item.startedAt, Date.now()), drops: 1 },
      { title: 'principal', value: (item) => item.principal, shrinks: true, drops: 2 },
      { title: 'tool', value: (item) => item.tool },
      { title: 'before', value: (item) => item.before },
      { title: 'after', value: (item) => item.after, paint: (text, item) => paintAction(terminal, item.after)(text) },
      { title: 'because', value: (item) => item.uncertain ?? item.because, shrinks: true },
    ],
    terminal.width,
  )
  return `${head}\n\n${table}`
}
