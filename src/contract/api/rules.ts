import { z } from 'zod'
import { everyone, members } from '../access.ts'
import { Risk } from '../risk.ts'
import { Rule, RuleAction } from '../rule.ts'
import { AgentName } from '../token.ts'
import { endpoint, page, ScopeText } from './base.ts'

const PrincipalText = z
  .templateLiteral([z.enum(['user', 'agent', 'session', 'run']), ':', z.string().min(1)], {
    error: 'must be KIND:NAME, such as agent:reviewer',
  })
  .describe('Whose calls are meant, such as agent:reviewer; the caller if absent')

/** One may name an agent shortly, and anybody by kind and name. */
const whose = {
  agent: AgentName.optional().describe('Short for principal agent:NAME'),
  principal: PrincipalText.optional(),
}
export type Whose = { readonly agent?: string | undefined; readonly principal?: string | undefined }

/** A rule with its place: rules are spoken of by scope and number. */
export const ShownRule = Rule.extend({
  index: z.int().describe('Its place in the list of its scope, from 0'),
  expired: z.boolean().describe('Its end has passed; it does not count'),
})
export type ShownRule = z.infer<typeof ShownRule>

export const RuleScope = z.object({ scope: z.string(), rules: z.array(ShownRule) })
export type RuleScope = z.infer<typeof RuleScope>

const LookedAt = z.object({
  index: z.int(),
  name: z.string().optional(),
  action: RuleAction,
  matches: z.boolean(),
  decides: z.boolean().describe('The last match of its scope'),
  mismatch: z
    .object({ part: z.string().describe('A key of the rule, or the pointer of a condition'), because: z.string() })
    .optional()
    .describe('The first part that does not fit'),
})

export const RuleTest = z.object({
  tool: z.string(),
  known: z.boolean().describe('Whether there is such a tool now'),
  server: z.string(),
  risk: Risk,
  riskFrom: z.string().describe('What the risk was taken from'),
  principal: z.string(),
  owner: z.string().optional(),
  project: z.string().optional(),
  action: RuleAction,
  because: z.string().describe('What decided, in words'),
  rule: z
    .object({ scope: z.string(), index: z.int(), name: z.string().optional() })
    .optional()
    .describe('The rule that decided'),
  approvers: z.array(z.string()).describe('Who has to agree if it asks'),
  scopes: z.array(
    z.object({
      scope: z.string(),
      action: RuleAction.optional().describe('What this scope says; the strictest of all wins'),
      onlyTightens: z.boolean().optional().describe('What this scope allows loosens nothing'),
      rules: z.array(LookedAt),
    }),
  ),
})
export type RuleTest = z.infer<typeof RuleTest>

const Stated = z.object({ rules: z.array(Rule).max(10_000).optional() })

/** Rules as a configuration has them, so that a whole one will do. Of a scope that is left out those in force count. */
export const RuleSet = z.object({
  ...Stated.shape,
  projects: z.record(z.string(), Stated).optional().describe('With the rules of these projects'),
  agents: z.record(z.string(), Stated).optional().describe('With the rules of these agents'),
  users: z.record(z.string(), Stated).optional().describe('With the rules of these users'),
})
export type RuleSet = z.infer<typeof RuleSet>

const ReplayedCall = z.object({
  call: z.string(),
  tool: z.string(),
  principal: z.string(),
  startedAt: z.string(),
  before: RuleAction,
  after: RuleAction,
  because: z.string().describe('What would decide now, in words'),
  uncertain: z.string().optional().describe('Why this may be wrong: what the record does not have'),
})
export type ReplayedCall = z.infer<typeof ReplayedCall>

export const Replay = z.object({
  looked: z.int().describe('Calls that were looked at'),
  changed: z.int(),
  uncertain: z.int(),
  summary: z.record(z.string(), z.int()).describe('How many calls would change, and how, such as `allow → ask`'),
  items: z.array(ReplayedCall).describe('The calls that would change, or about which nothing certain can be said'),
  next: z.string().nullable().describe('Pass it as `cursor` to look at older calls; null at the end'),
})
export type Replay = z.infer<typeof Replay>

export const rules = {
  list: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/rules',
      tags: ['rules'],
      summary: 'Rules by scope: those that concern a principal, or all of them',
    })
    .input(z.strictObject({ ...whose, scope: ScopeText.optional().describe('Only the rules of this scope') }))
    .output(page(RuleScope)),
  set: endpoint(members)
    .route({
      method: 'PUT',
      path: '/rules',
      tags: ['rules'],
      summary: 'Replace the rules of one scope',
      inputStructure: 'detailed',
    })
    .input(
      z.object({
        query: z.strictObject({ scope: ScopeText.default('global') }).prefault({}),
        body: z.strictObject({ rules: z.array(Rule).max(10_000) }),
      }),
    )
    .output(RuleScope),
  test: endpoint(everyone, false)
    .route({
      method: 'POST',
      path: '/rules/test',
      tags: ['rules'],
      summary: 'What would be decided about a call, by which rule, and why. Nothing is called',
    })
    .input(
      z.strictObject({
        tool: z.string().min(1).describe('Public name; it need not exist yet'),
        ...whose,
        arguments: z.record(z.string(), z.json()).default({}).describe('Arguments of the call'),
        meta: z.record(z.string(), z.json()).optional().describe('`_meta` of the call'),
        server: z.string().optional().describe('For a tool that does not exist yet'),
        risk: Risk.optional().describe('For a tool that does not exist yet, or instead of its risk'),
        rules: RuleSet.optional().describe('Other rules than those in force'),
      }),
    )
    .output(RuleTest),
  replay: endpoint(everyone, false)
    .route({
      method: 'POST',
      path: '/rules/replay',
      tags: ['rules'],
      summary: 'What a changed set of rules would have answered to past calls, newest first. Nothing is called',
    })
    .input(
      z.strictObject({
        ...whose,
        rules: RuleSet.optional().describe('The changed rules; those in force, against what was recorded, if absent'),
        since: z.iso.datetime({ offset: true }).optional().describe('Only calls that began after this'),
        tool: z.string().optional().describe('Only calls of this tool'),
        limit: z.int().min(1).max(5000).default(1000).describe('Calls to look at'),
        cursor: z.string().optional().describe('`next` of the answer before'),
      }),
    )
    .output(Replay),
}
