import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { renderGuide, toCommand } from '../../src/cli/commands/tools/guide.ts'
import { toExampleArguments } from '../../src/cli/commands/tools/schema.ts'
import type { Tool } from '../../src/contract/tool.ts'

const write: Tool = {
  name: 'files_write_file',
  original: 'write_file',
  server: 'files',
  description: 'Writes a file.\n# Not a heading',
  risk: 'write',
  riskFrom: 'annotations',
  inputSchema: {
    type: 'object',
    properties: {
      encoding: { type: 'string', enum: ['utf8', 'base64'], default: 'utf8', description: 'How the\ntext is written' },
      path: { type: 'string', description: 'Where' },
      mode: { type: 'integer', minimum: 1, maximum: 777 },
      lines: { type: 'array', items: { type: 'string' } },
    },
    required: ['path', 'lines'],
  },
}

const read: Tool = { ...write, name: 'files_read', original: 'read', risk: 'read', description: '', inputSchema: {} }

describe('the guide for models', () => {
  const guide = renderGuide([write, read])

  it('says what each tool does, as a quotation of the server', () => {
    expect(guide).toContain('### `files_write_file`')
    expect(guide).toContain('> Writes a file.\n> # Not a heading')
  })

  it('lists arguments with type, need, default, choices and description, required ones first', () => {
    expect(guide).toContain('- `path` (string, required): Where')
    expect(guide).toContain('- `lines` (array of string, required)')
    expect(guide).toContain('- `encoding` ("utf8" | "base64", optional, default `"utf8"`): How the text is written')
    expect(guide).toContain('- `mode` (integer, optional, at least `1`, at most `777`)')
    expect(guide.indexOf('`path` (')).toBeLessThan(guide.indexOf('`encoding` ('))
    expect(guide).toContain('Arguments: none.')
  })

  it('gives an example over MCP and in a shell', () => {
    expect(guide).toContain('"name": "files_write_file"')
    expect(guide).toContain(`sallyport tools call files_write_file --args '{"path":"text","lines":["text"]}'`)
    expect(guide).toContain('sallyport tools call files_read\n')
  })

  it('says the risk and what happens', () => {
    expect(guide).toContain('Risk: **write**. Changes something: requires approval, unless a rule or a grant allows it')
    expect(guide).toContain('Risk: **read**. Runs at once')
  })

  it('hides nothing that a model would read and a person would not see', () => {
    const hidden = renderGuide([{ ...read, description: 'harmless\u200b\u{e0041}' }])
    expect(hidden).toContain('harmless\\u{200b}\\u{e0041}')
  })

  it('survives schemas that refer to themselves or make no sense', () => {
    const node = { type: 'object', properties: { child: { $ref: '#/$defs/node' } }, required: ['child'] }
    const endless = { ...node, $defs: { node } }
    const nonsense = { type: 7, properties: { a: 'x', b: { enum: 3 }, c: { anyOf: 'y' } }, required: 'all' }
    for (const inputSchema of [endless, nonsense, null, [], { properties: null }]) {
      expect(renderGuide([{ ...read, inputSchema }])).toContain('### `files_read`')
    }
  })
})

describe('example calls', () => {
  it.each([
    [{ type: 'object', properties: { a: { type: 'string', format: 'date' } }, required: ['a'] }, { a: '2026-01-31' }],
    [{ type: 'object', properties: { a: { const: 'x' } }, required: ['a'] }, { a: 'x' }],
    [{ type: 'object', properties: { a: { type: 'number', minimum: 5 } }, required: ['a'] }, { a: 5 }],
    [{ type: 'object', properties: { a: { anyOf: [{ type: 'boolean' }] } }, required: ['a'] }, { a: true }],
    [{ type: 'object', properties: { a: { type: 'string', examples: ['hello'] }, b: {} } }, { a: 'hello' }],
    [{ type: 'object' }, {}],
  ])('fit the schema %j', (schema, expected) => {
    expect(toExampleArguments(schema)).toEqual(expected)
  })

  it.each(["it's", '$(id)', 'a b', '"; ls', '`id`', '--json'])('are safe in a shell with the value %s', (value) => {
    const line = toCommand('tool', { text: value })
    const words = execFileSync('sh', ['-c', line.replace('sallyport', `printf '%s\\n'`)], { encoding: 'utf8' })
    expect(words).toBe(['tools', 'call', 'tool', '--arg', `text=${value}`, ''].join('\n'))
  })

  it('never break out of their line', () => {
    expect(toCommand('tool', { text: 'a\n```\nb' }).split('\n')).toHaveLength(1)
  })
})
