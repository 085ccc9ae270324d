import { expect, it } from 'vitest'
import { ServerName } from '../../src/contract/server.ts'
import { assignNames, toTitle } from '../../src/imports/names.ts'

it.each([
  [
    ['github', 'Team Search', 'Büro'],
    ['github', 'Team-Search', 'Buro'],
  ],
  [
    ['a b', 'a-b', 'a_b'],
    ['a-b-2', 'a-b', 'a_b'],
  ],
  [
    ['x', 'x', 'x'],
    ['x', 'x-2', 'x-3'],
  ],
  [
    ['sallyport', 'Sallyport'],
    ['sallyport-2', 'Sallyport'],
  ],
  [
    ['日本', '文書', ''],
    ['server', 'server-2', 'server-3'],
  ],
  [
    ['../../etc', '__proto__', '-x-'],
    ['etc', 'proto', 'x'],
  ],
  [['a\u202eb\u0000\u001b[2Jc'], ['a-b-2Jc']],
  [
    ['n'.repeat(70), 'n'.repeat(71)],
    ['n'.repeat(64), `${'n'.repeat(62)}-2`],
  ],
])('gives %j the names %j', (texts, names) => {
  expect(assignNames(texts)).toEqual(names)
  for (const name of names) expect(ServerName.safeParse(name).success).toBe(true)
})

it('keeps the original as a title without control and bidirectional characters', () => {
  expect(toTitle(' a\u202eb\u0000\nc ')).toBe('abc')
  expect(toTitle('\u202e')).toBeUndefined()
  expect(toTitle('x'.repeat(500))).toHaveLength(128)
})
