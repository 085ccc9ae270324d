import fc from 'fast-check'
import { stringify as toToml } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { stringify as toYaml } from 'yaml'
import { type ConfigEdit, parseConfig } from '../../src/config/config.ts'
import { editText } from '../../src/config/edit.ts'
import { Rule } from '../../src/contract/rule.ts'
import type { Scope } from '../../src/contract/scope.ts'
import { configOf } from './support.ts'

function edit(file: string, text: string, change: Omit<Extract<ConfigEdit, { kind: 'set-rules' }>, 'kind'>): string {
  const reading = parseConfig(file, text)
  if (!reading.ok) throw new Error('The text is not valid')
  return editText({ file, text, ...reading }, { kind: 'set-rules', ...change })
}

const rulesOf = (...rules: object[]) => rules.map((rule) => Rule.parse(rule))

const ask = { tools: 'a_*', action: 'ask' }
const deny = { tools: 'b_*', risk: 'danger', action: 'deny' }
const allow = { tools: '*', arguments: { '/env': { in: ['test', 1] } }, action: 'allow', approvers: 'other' }

describe('rules that are set', () => {
  it('keep in YAML the comments and the form of those that stay', () => {
    const text = `# Ask Kim.
rules:
  # careful
  - { tools: "a_*", action: ask } # for now
  - tools: b_*
    risk: danger # really
    action: deny

listen: { port: 0 }
`
    expect(edit('x.yaml', text, { rules: rulesOf(deny, allow, ask) })).toBe(`# Ask Kim.
rules:
  - tools: b_*
    risk: danger # really
    action: deny
  - { tools: "*", arguments: { /env: { in: [ test, 1 ] } }, action: allow, approvers: other }
  # careful
  - { tools: "a_*", action: ask } # for now

listen: { port: 0 }
`)
    expect(edit('x.yaml', text, { rules: rulesOf(ask, deny) })).toBe(text)
    expect(configOf(edit('x.yaml', text, { rules: [] })).rules).toEqual([])
  })

  it('stand on lines of their own where there were none', () => {
    expect(edit('x.yaml', 'rules: []\n', { rules: rulesOf(ask, deny) })).toBe(
      'rules:\n  - { tools: a_*, action: ask }\n  - { tools: b_*, risk: danger, action: deny }\n',
    )
    expect(edit('x.yaml', '{}\n', { rules: rulesOf(ask), scope: { kind: 'agent', name: 'a' } })).toContain('a_*')
  })

  it('replace in TOML the tables of the old ones, or the line, and nothing else', () => {
    const text = `# Our gateway
naming = "{server}_{tool}"

[[rules]]
tools = "a_*"
action = "ask"

[[rules]]
action = "deny"
[rules.arguments]
"/env" = "live"

[agents.a] # the one
project = "shop"

[projects.shop]
owners = ["kim"]
`
    const after = edit('x.toml', text, { rules: rulesOf(deny) })
    expect(after).toContain('[agents.a] # the one\nproject = "shop"')
    expect(configOf(after, 'x.toml').rules).toEqual(rulesOf(deny))
    expect(configOf(edit('x.toml', text, { rules: [] }), 'x.toml').rules).toEqual([])
    const scoped = edit('x.toml', text, { rules: rulesOf(allow), scope: { kind: 'agent', name: 'a' } })
    expect(configOf(scoped, 'x.toml').agents.a).toMatchObject({ project: 'shop', rules: rulesOf(allow) })
    expect(edit('x.toml', 'rules = []\n', { rules: rulesOf(ask) })).toBe(
      'rules = [{ tools = "a_*", action = "ask" }]\n',
    )
  })

  it('are refused for a project that is not there, and for scopes that no file has', () => {
    const set = (scope: Scope) => () => edit('x.yaml', '{}\n', { rules: [], scope })
    expect(set({ kind: 'project', name: 'shop' })).toThrow('No project is named shop')
    expect(set({ kind: 'session', name: 's' })).toThrow('are not stored in the file')
  })

  it('come to the same in YAML, JSON and TOML, whatever stood there before', () => {
    const pool: object[] = [
      ask,
      deny,
      allow,
      { action: 'deny', reason: 'a "quoted" \\ one', expires: '2030-01-01T00:00:00Z' },
    ]
    const lists = fc.array(
      fc.constantFrom(...pool).map((rule) => structuredClone(rule)),
      { maxLength: 5 },
    )
    const scopes = fc.constantFrom<Scope | undefined>(undefined, { kind: 'agent', name: 'a' })
    fc.assert(
      fc.property(lists, lists, scopes, (before, after, scope) => {
        const config = {
          rules: structuredClone(before),
          agents: { a: { rules: structuredClone(before), servers: {} } },
        }
        const texts = { 'x.yaml': toYaml(config), 'x.json': JSON.stringify(config), 'x.toml': toToml(config) }
        for (const [file, text] of Object.entries(texts)) {
          const edited = configOf(edit(file, text, { rules: rulesOf(...after), ...(scope && { scope }) }), file)
          expect(scope ? edited.agents.a?.rules : edited.rules).toEqual(rulesOf(...after))
          expect(scope ? edited.rules : edited.agents.a?.rules).toEqual(rulesOf(...before))
        }
      }),
      { numRuns: 60 },
    )
  })
})
