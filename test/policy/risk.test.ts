import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Risk, riskOrder } from '../../src/contract/risk.ts'
import type { ToolAnnotations } from '../../src/contract/tool.ts'
import { type RiskFacts, riskOf } from '../../src/policy/policy.ts'

const plain: RiskFacts = {
  name: 'thing',
  annotations: undefined,
  override: undefined,
  defaultRisk: undefined,
  trust: 'annotations',
}

function judged(facts: Partial<RiskFacts>): string {
  const { risk, from } = riskOf({ ...plain, ...facts })
  return `${risk} from ${from}`
}

type Row = [hints: ToolAnnotations | undefined, read: string, none: string, danger: string]

/** What a trusted server's tool is, with a default of read, without one, and with a default of danger. */
const trusted: Row[] = [
  [undefined, 'read from default', 'write from default', 'danger from default'],
  [{}, 'read from default', 'write from default', 'danger from default'],
  [{ title: 'A title' }, 'read from default', 'write from default', 'danger from default'],
  [{ readOnlyHint: true }, 'read from annotations', 'read from annotations', 'read from annotations'],
  [
    { readOnlyHint: true, destructiveHint: false },
    'read from annotations',
    'read from annotations',
    'read from annotations',
  ],
  [
    { readOnlyHint: true, destructiveHint: true },
    'danger from annotations',
    'danger from annotations',
    'danger from annotations',
  ],
  [{ destructiveHint: true }, 'danger from annotations', 'danger from annotations', 'danger from annotations'],
  [{ readOnlyHint: false }, 'write from annotations', 'write from annotations', 'write from annotations'],
  [{ destructiveHint: false }, 'write from annotations', 'write from annotations', 'write from annotations'],
  [{ idempotentHint: true }, 'write from annotations', 'write from annotations', 'write from annotations'],
  [{ openWorldHint: false }, 'write from annotations', 'write from annotations', 'write from annotations'],
]

/** The same where the server may lower nothing. */
const untrusted: Row[] = [
  [undefined, 'read from default', 'write from default', 'danger from default'],
  [{ readOnlyHint: true }, 'read from annotations', 'write from default', 'danger from default'],
  [
    { readOnlyHint: true, destructiveHint: true },
    'danger from annotations',
    'danger from annotations',
    'danger from annotations',
  ],
  [{ destructiveHint: true }, 'danger from annotations', 'danger from annotations', 'danger from annotations'],
  [{ readOnlyHint: false }, 'write from annotations', 'write from annotations', 'danger from default'],
  [{ idempotentHint: true }, 'write from annotations', 'write from annotations', 'danger from default'],
]

/** The same for a tool called `delete_everything`. */
const destroying: Row[] = [
  [undefined, 'read from default', 'write from default', 'danger from default'],
  [{ readOnlyHint: true }, 'write from name', 'write from name', 'danger from name'],
  [
    { readOnlyHint: true, destructiveHint: true },
    'danger from annotations',
    'danger from annotations',
    'danger from annotations',
  ],
  [
    { readOnlyHint: false, destructiveHint: false },
    'write from annotations',
    'write from annotations',
    'danger from name',
  ],
  [{ idempotentHint: true }, 'write from annotations', 'write from annotations', 'danger from name'],
]

describe.each([
  ['of a trusted server', { trust: 'annotations' }, trusted],
  ['of a server that may lower nothing', { trust: 'none' }, untrusted],
  ['with a name that says more than its hints', { name: 'delete_everything' }, destroying],
] as const)('the risk of a tool %s', (_, facts, rows) => {
  it.each(rows)('with the hints %j', (annotations, read, none, danger) => {
    expect(judged({ ...facts, annotations, defaultRisk: 'read' })).toBe(read)
    expect(judged({ ...facts, annotations })).toBe(none)
    expect(judged({ ...facts, annotations, defaultRisk: 'danger' })).toBe(danger)
  })
})

const names = fc.constantFrom('thing', 'delete_all', 'get_user', 'write_file', 'listDrops', 'dropTable', 'x')
const risks = fc.constantFrom<Risk>('read', 'write', 'danger')
const hint = fc.option(fc.boolean(), { nil: undefined })
const hints = fc.record({ readOnlyHint: hint, destructiveHint: hint, idempotentHint: hint, openWorldHint: hint })
const facts = fc.record<RiskFacts>({
  name: names,
  annotations: fc.option(hints, { nil: undefined }),
  override: fc.option(risks, { nil: undefined }),
  defaultRisk: fc.option(risks, { nil: undefined }),
  trust: fc.constantFrom('annotations', 'none'),
})

it("takes the operator's word over everything else", () => {
  fc.assert(
    fc.property(facts, risks, (given, override) => {
      expect(riskOf({ ...given, override })).toEqual({ risk: override, from: 'override' })
    }),
  )
})

it('never lets a server that is not trusted lower a risk', () => {
  fc.assert(
    fc.property(facts, (given) => {
      const { risk } = riskOf({ ...given, trust: 'none', override: undefined })
      expect(riskOrder[risk]).toBeGreaterThanOrEqual(riskOrder[given.defaultRisk ?? 'write'])
    }),
  )
})

it('takes a tool that says nothing of itself for a writing one', () => {
  fc.assert(
    fc.property(names, fc.constantFrom<RiskFacts['trust']>('annotations', 'none'), (name, trust) => {
      expect(riskOf({ ...plain, name, trust }).risk).toBe('write')
    }),
  )
})

it.each([
  'delete_all',
  'deleteAll',
  'DELETE',
  'bulk-delete',
  'HTTPDelete',
  'users.remove',
  'dropTable',
  'create_issue',
  'sendMail',
  'Write file',
  'set_thing',
])('does not believe that %s only reads', (name) => {
  expect(riskOf({ ...plain, name, annotations: { readOnlyHint: true } })).toEqual({ risk: 'write', from: 'name' })
})

it.each(['get_deleted_items', 'list_settings', 'read_post', 'search_updates', 'dropbox_search', 'getUpdate', 'offset'])(
  'believes that %s only reads',
  (name) => {
    expect(riskOf({ ...plain, name, annotations: { readOnlyHint: true } }).risk).toBe('read')
  },
)
