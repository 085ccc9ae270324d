import { expect, it } from 'vitest'
import { toGatewayError } from '../../src/contract/errors.ts'
import { readImportText } from '../../src/imports/text.ts'

it.each([
  ['JSON', '{ "a": { "b": 1 } }'],
  ['JSON with comments', '// ours\n{ "a": { "b": 1, }, }'],
  ['YAML', 'a:\n  b: 1\n'],
  ['TOML', '[a]\nb = 1\n'],
  ['a text with a byte order mark', '\ufeff{ "a": { "b": 1 } }'],
  ['a code block', '```json\n{ "a": { "b": 1 } }\n```\n'],
])('reads %s', (_, text) => {
  expect(readImportText(text)).toEqual({ a: { b: 1 } })
})

const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]']
for (const [index, key] of [...'bcdefgh'].entries())
  bomb.push(`${key}: &${key} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(', ')}]`)

it.each([
  ['is larger than 1 MiB', `{"a":"${'x'.repeat(1_048_576 - 7)}"}`],
  ['has bytes of more than 1 MiB', `{"a":"${'ü'.repeat(524_288)}"}`],
  ['is nested deeply as JSON', `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`],
  ['is nested very deeply as JSON', '{"a":'.repeat(100_000)],
  ['is nested deeply as YAML', '- '.repeat(5000)],
  ['has aliases that expand to many values', bomb.join('\n')],
  ['has the key __proto__ in JSON', '{ "mcpServers": { "__proto__": { "command": "x" } } }'],
  ['has the key __proto__ in YAML', 'mcpServers:\n  a: { env: { __proto__: x } }'],
  ['has the key __proto__ in TOML', '[mcp_servers.__proto__]\ncommand = "x"'],
  ['has half of a surrogate pair', '{ "a": "\\ud800" }'],
  ['is a list', '- 1'],
  ['is one word', 'hunter2'],
])('refuses a text that %s', (_, text) => {
  expect(() => readImportText(text)).toThrow(expect.objectContaining({ code: 'import-unreadable' }))
})

it('accepts exactly 1 MiB', () => {
  const text = `{"a":"${'x'.repeat(1_048_576 - 8)}"}`
  expect(Buffer.byteLength(text)).toBe(1_048_576)
  expect(Object.keys(readImportText(text))).toEqual(['a'])
})

it.each(['{ "token": "ghp_secret', 'a: !ghp_secret [', 'token = "ghp_secret', 'a: *ghp_secret'])(
  'quotes nothing of a text that it cannot read: %s',
  (text) => {
    const message = catchMessage(() => readImportText(text))
    expect(message).toMatch(/JSON, YAML or TOML/)
    expect(message).not.toContain('secret')
  },
)

function catchMessage(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return toGatewayError(error).message
  }
  return ''
}
