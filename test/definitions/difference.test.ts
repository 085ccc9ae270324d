import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/contract/json.ts'
import { toDifference } from '../../src/definitions/difference.ts'
import { definition, judge, reversed } from './support.ts'

describe('the difference', () => {
  it('tells each field by its path, with the lines that went and came', () => {
    const after = structuredClone<JsonValue & object>({
      ...definition,
      description: 'Reads a file\nand sends it along',
      inputSchema: {
        type: 'object',
        properties: { path: { type: 'number', description: 'Where it is', enum: ['a', 'b'], default: 'a' }, bcc: {} },
        required: ['path'],
      },
      annotations: { readOnlyHint: true },
    })
    expect(toDifference(definition, after)).toBe(
      [
        'description (changed)',
        '    Reads a file',
        '  - and returns it',
        '  + and sends it along',
        'inputSchema.properties.path.type (changed)',
        '  - string',
        '  + number',
        'inputSchema.properties.bcc (added)',
        '  + {}',
        'annotations.title (removed)',
        '  - Reading',
      ].join('\n'),
    )
  })

  it('makes visible what hides, in texts and in names', () => {
    expect(toDifference({ a: 'true' }, { a: true })).toBe('a (changed)\n  - "true"\n  + true')
    const text = toDifference({ a: 'x' }, { a: 'x\u200by\u001b[8m', 'k\u202ey': 1 })
    expect(text).toContain('+ x\\u{200b}y\\u{1b}[8m')
    expect(text).toContain('"k\\u{202e}y" (added)')
  })

  it('of something new is all of it, and of the same thing nothing', () => {
    expect(toDifference(undefined, { name: 'a', description: 'b' })).toBe(
      'name (added)\n  + a\ndescription (added)\n  + b',
    )
    expect(toDifference(definition, reversed(definition))).toBe('')
  })

  it('is empty exactly when the definitions say the same', () => {
    const value = fc.jsonValue({ maxDepth: 3 }).map((each): JsonValue => JSON.parse(JSON.stringify(each)))
    fc.assert(
      fc.property(value, value, (a, b) => {
        const same = judge({ name: 'x', a }).tools[0]?.hash === judge({ name: 'x', a: b }).tools[0]?.hash
        expect(toDifference({ a }, { a: b }) === '').toBe(same)
      }),
      { numRuns: 150 },
    )
  })

  it('of very long texts ends soon', () => {
    const lines = (word: string) => Array.from({ length: 30_000 }, (_, index) => `${word} ${index}`).join('\n')
    expect(toDifference({ a: lines('a') }, { a: lines('b') }).split('\n')).toHaveLength(60_001)
  })
})
