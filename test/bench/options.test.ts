import { expect, it } from 'vitest'
import { readOptions } from '../../bench/options.ts'

it('chooses cells and targets by how their names begin, and knows when nothing is named so', () => {
  const { cells, measures, targets } = readOptions(['--only', 'json-write,sallyport,sdk'])
  expect(cells.map(({ name }) => name)).toEqual(['json-write-100B-1', 'json-write-100B-16', 'json-write-100B-64'])
  expect(measures).toEqual([])
  expect(targets).toEqual(['sdk', 'sallyport'])
  expect(readOptions([]).targets).not.toContain('mcp-hub')
  expect(readOptions(['--peers']).targets).toContain('mcp-hub')
  expect(() => readOptions(['--only', 'nonsense'])).toThrow('nonsense')
})
