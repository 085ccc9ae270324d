import { expect, it } from 'vitest'
import { formatProblem, parseConfig } from '../../src/config/config.ts'
import { problemsOf } from './support.ts'

function linesOf(text: string): string[] {
  return problemsOf('x.yaml', text).map(formatProblem)
}

it('names the line and key of conditions that can never be fulfilled or understood', () => {
  const text = `rules:
  - { action: deny, arguments: { path: x } }
  - action: deny
    arguments:
      "/a": { min: 3, max: 1 }
      "/b": { glbo: "x" }
      "/c": [1]
      "/d": { min: "1" }
      "/e": {}
      "/f": { exists: false, equals: 1 }
      "/g": { in: [[1]] }
  - { action: deny, expires: tomorrow }
  - { action: deny, approvers: three }
`
  expect(linesOf(text)).toEqual([
    'x.yaml:2: rules.0.arguments.path: the name must be a JSON pointer that begins with /, such as /path or /tags/0',
    'x.yaml:5: rules.1.arguments./a.min: never matches: min is larger than max',
    'x.yaml:6: rules.1.arguments./b.glbo: is not a known key (did you mean `glob`?)',
    'x.yaml:6: rules.1.arguments./b: must contain at least one condition',
    'x.yaml:7: rules.1.arguments./c: must be text, a number, true or false, null or a map',
    'x.yaml:8: rules.1.arguments./d.min: must be a number, not text',
    'x.yaml:9: rules.1.arguments./e: must contain at least one condition',
    'x.yaml:10: rules.1.arguments./f.exists: never matches: a missing value cannot meet the other conditions',
    'x.yaml:11: rules.1.arguments./g.in.0: must be text, a number, true or false or null',
    'x.yaml:12: rules.2.expires: must be a time such as 2030-01-31T12:00:00Z',
    'x.yaml:13: rules.3.approvers: must be any, client, other, two or group:NAME',
  ])
})

it('refuses a rule for a project that is nowhere, in every scope, and takes globs for what may come', () => {
  const text = `projects:
  shop: { rules: [{ project: shp, action: deny }] }
agents:
  a: { rules: [{ project: "s*", action: deny }, { project: bank, action: deny }] }
rules:
  - { project: shop, action: deny }
  - { project: "*", action: deny }
`
  expect(linesOf(text)).toEqual([
    'x.yaml:2: projects.shop.rules.0.project: no project is named shp (did you mean `shop`?)',
    'x.yaml:4: agents.a.rules.1.project: no project is named bank',
  ])
})

it('points out rules that have ended, and takes the file nevertheless: time alone refuses no start', () => {
  const text = `rules:
  - { action: allow }
  - action: allow
    expires: "2026-11-16T12:00:00Z"
agents:
  a: { rules: [{ action: deny, expires: "2026-11-16T14:00:00+01:00" }] }
`
  const reading = parseConfig('x.yaml', text)
  if (!reading.ok) throw new Error('refused')
  const noticesAt = (time: string) => reading.notices(Date.parse(time)).map(formatProblem)
  expect(noticesAt('2026-11-16T11:59:59Z')).toEqual([])
  expect(noticesAt('2026-11-16T12:00:00Z')).toEqual(['x.yaml:4: rules.1.expires: has passed: this rule has expired'])
  expect(noticesAt('2026-11-16T13:00:00Z')).toHaveLength(2)
})

it('refuses `client` as approvers in a project that has owners, and takes it where administrators write', () => {
  const text = `projects:
  shop: { owners: [olga], rules: [{ action: ask }, { action: ask, approvers: client }] }
  bank: { rules: [{ action: ask, approvers: client }] }
agents:
  a: { rules: [{ action: ask, approvers: client }] }
users:
  anna: { rules: [{ action: ask, approvers: client }] }
rules:
  - { action: ask, approvers: client }
`
  expect(linesOf(text)).toEqual([
    'x.yaml:2: projects.shop.rules.1.approvers: client is only allowed in scopes of administrators; project:shop has owners or a repository: use any, other, two or group:NAME',
  ])
})
