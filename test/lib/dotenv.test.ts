import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDotenv } from '../../src/lib/dotenv.ts'

function read(text: string): Record<string, string> {
  const parsed = parseDotenv(text)
  if (!parsed.ok) throw new Error(`${parsed.line}: ${parsed.message}`)
  return Object.fromEntries(parsed.values)
}

describe('a file of variables', () => {
  it.each<[why: string, text: string, values: Record<string, string>]>([
    ['a name and a value', 'A=1', { A: '1' }],
    ['spaces around both', '  A = 1  \n', { A: '1' }],
    ['an empty value', 'A=\nB=""', { A: '', B: '' }],
    ['export', 'export A=1\nexport\tB=2', { A: '1', B: '2' }],
    ['comments and blank lines', '# no\n\nA=1 # one\n  # no\nB=2', { A: '1', B: '2' }],
    ['a comment in place of a value', 'A= # nothing', { A: '' }],
    ['a # inside a word', 'A=https://a.example/#part', { A: 'https://a.example/#part' }],
    ['single quotes without escapes', "A='a \\n # b'", { A: 'a \\n # b' }],
    ['double quotes with escapes', 'A="a\\n\\"b\\" \\\\ \\$C # d" # e', { A: 'a\n"b" \\ $C # d' }],
    ['back quotes', 'A=`it\'s "so"`', { A: 'it\'s "so"' }],
    ['a key of several lines', 'A="-----BEGIN\nabc\n-----END"\nB=2', { A: '-----BEGIN\nabc\n-----END', B: '2' }],
    ['an = in the value', 'A=b=c==', { A: 'b=c==' }],
    ['the last of several', 'A=1\nA=2', { A: '2' }],
    ['no expansion', 'A=1\nB=${A}$A', { A: '1', B: '${A}$A' }],
    ['line breaks of Windows, and a byte order mark', '\ufeffA=1\r\nB="2\r\n3"\r\n', { A: '1', B: '2\n3' }],
    ['nothing', '', {}],
  ])('has %s', (_, text, values) => {
    expect(read(text)).toEqual(values)
  })

  it.each([
    ['A=1\nhunter2', 2, /NAME=value/],
    ['A=1\nB-C=hunter2', 2, /NAME=value/],
    ['A=1\n\nB="hunter2', 3, /does not end/],
    ["B='hunter2", 1, /does not end/],
    ['A="1"hunter2', 1, /after the closing quote/],
    ['A=hunter2\0', 1, /NUL/],
  ])('names the line of a mistake and never its text: %j', (text, line, message) => {
    const parsed = parseDotenv(text)
    expect(parsed).toMatchObject({ ok: false, line, message: expect.stringMatching(message) })
    expect(JSON.stringify(parsed)).not.toContain('hunter2')
  })

  it('ends with any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('A', '=', '"', "'", '\\', '\n', ' ', '#', '`') }), (text) => {
        expect(typeof parseDotenv(text).ok).toBe('boolean')
      }),
    )
  })
})
