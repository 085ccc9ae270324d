import { expect, it } from 'vitest'
import { parseText } from '../../src/documents/parse.ts'

it('reads a map with very many keys, and finds a duplicate at its end', () => {
  const lines = Array.from({ length: 12_000 }, (_, index) => `key${index}: {}`)
  expect(parseText('yaml', lines.join('\n'))).toMatchObject({ ok: true })
  const twice = parseText('yaml', [...lines, 'key7: {}'].join('\n'))
  expect(twice).toEqual({
    ok: false,
    faults: [{ position: { line: 12_001, column: 1 }, key: 'key7', message: 'is a duplicate key in the same map' }],
  })
})

it('finds duplicate keys in maps of lists and of maps, however they are written', () => {
  const text = 'a:\n  - { b: 1, "b": 2 }\n  - c: { d: 1 }\n    c: 2\n'
  const found = parseText('yaml', text)
  expect(found.ok ? [] : found.faults.map(({ key, position }) => [key, position.line])).toEqual([
    ['a.0.b', 2],
    ['a.1.c', 4],
  ])
})
