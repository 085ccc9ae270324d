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
  .describe('Principal whose calls are judged, such as agent:reviewer. Default: the principal of this request')

/** The principal of a request: an agent by its name, or any principal by kind and name. */
const whose = {
  agent: AgentName.optional().describe('The same as principal agent:NAME'),
  principal: PrincipalText.optional(),
}
export type Whose = { readonly agent?: string | undefined; readonly principal?: string | undefined }

/** A rule with its position. Messages refer to a rule by its scope and position. */
export const ShownRule = Rule.extend({
  index: z.int().describe('Position in the list of rules of the scope, from 0'),
  expired: z.boolean().describe('True if the rule has expired and is ignored'),
})
export type ShownRule = z.infer<typeof ShownRule>

export const RuleScope = z.object({ scope: z.string(), rules: z.array(ShownRule) })
export type RuleScope = z.infer<typeof RuleScope>

const EvaluatedRule = z.object({
  index: z.int(),
  name: z.string().optional(),
  action: RuleAction,
  matches: z.boolean(),
  decides: z.boolean().describe('True for the last matching rule of the scope'),
  mismatch: z
    .object({ part: z.string().describe('Key of the rule, or JSON pointer of a condition'), because: z.string() })
    .optional()
    .describe('The first part of the rule that does not match'),
})

export const RuleTest = z.object({
  tool: z.string(),
  known: z.boolean().describe('True if the tool exists now'),
  server: z.string(),
  risk: Risk,
  riskFrom: z.string().describe('Source of the risk'),
  principal: z.string(),
  owner: z.string().optional(),
  project: z.string().optional(),
  action: RuleAction,
  because: z.string().describe('Reason for the decision, in words'),
  rule: z
    .object({ scope: z.string(), index: z.int(), name: z.string().optional() })
    .optional()
    .describe('The rule that decided'),
  approvers: z.array(z.string()).describe('Who must approve the call if the decision is ask'),
  scopes: z.array(
    z.object({
      scope: z.string(),
      action: RuleAction.optional().describe('Decision of this scope. The strictest decision of all scopes wins'),
      onlyTightens: z
        .boolean()
        .optional()
        .describe('True if this scope can only make the decision stricter, so that its `allow` rules have no effect'),
      rules: z.array(EvaluatedRule),
    }),
  ),
})
export type RuleTest = z.infer<typeof RuleTest>

const RuleList = z.object({ rules: z.array(Rule).max(10_000).optional() })

/** Rules in the form of a configuration; a complete configuration is accepted too. For missing scopes the active rules are used. */
export const RuleSet = z.object({
  ...RuleList.shape,
  projects: z.record(z.string(), RuleList).optional().describe('Rules of projects, by name'),
  agents: z.record(z.string(), RuleList).optional().describe('Rules of agents, by name'),
  users: z.record(z.string(), RuleList).optional().describe('Rules of users, by name'),
})
export type RuleSet = z.infer<typeof RuleSet>

const ReplayedCall = z.object({
  call: z.string(),
  tool: z.string(),
  principal: z.string(),
  startedAt: z.string(),
  before: RuleAction,
  after: RuleAction,
  because: z.string().describe('Reason for the new decision, in words'),
  uncertain: z
    .string()
    .optional()
    .describe('Why the result may be wrong: which data the audit record does not contain'),
})
export type ReplayedCall = z.infer<typeof ReplayedCall>

export const Replay = z.object({
  looked: z.int().describe('Number of calls that were evaluated'),
  changed: z.int(),
  uncertain: z.int(),
  summary: z
    .record(z.string(), z.int())
    .describe('Number of calls whose decision would change, by change, such as `allow → ask`'),
  items: z.array(ReplayedCall).describe('Calls whose decision would change or is uncertain'),
  next: z.string().nullable().describe('Value of `cursor` for older calls; null at the end'),
})
export type Replay = z.infer<typeof Replay>

export const rules = {
  list: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/rules',
      tags: ['rules'],
      summary: 'List rules by scope: the rules for a principal, or all rules',
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
      summary: 'Test which decision the rules make about a call, and why. The call is not made',
    })
    .input(
      z.strictObject({
        tool: z.string().min(1).describe('Public name. The tool does not need to exist'),
        ...whose,
        arguments: z.record(z.string(), z.json()).default({}).describe('Arguments of the call'),
        meta: z.record(z.string(), z.json()).optional().describe('`_meta` of the call'),
        server: z.string().optional().describe('Server of a tool that does not exist yet'),
        risk: Risk.optional().describe('Risk to use instead of the risk of the tool'),
        rules: RuleSet.optional().describe('Rules to use for this replay only, instead of the active rules'),
      }),
    )
    .output(RuleTest),
  replay: endpoint(everyone, false)
    .route({
      method: 'POST',
      path: '/rules/replay',
      tags: ['rules'],
      summary: 'Evaluate changed rules for past calls, newest first. No call is made',
    })
    .input(
      z.strictObject({
        ...whose,
        rules: RuleSet.optional().describe(
          'The changed rules. If missing, the active rules are compared with the recorded decisions',
        ),
        since: z.iso.datetime({ offset: true }).optional().describe('Only calls that began after this time'),
        tool: z.string().optional().describe('Only calls of this tool'),
        limit: z.int().min(1).max(5000).default(1000).describe('Maximum number of calls to evaluate'),
        cursor: z.string().optional().describe('`next` of the previous answer'),
      }),
    )
    .output(Replay),
}
