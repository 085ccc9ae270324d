import fc from 'fast-check'
import { expect, it } from 'vitest'
import { judge } from '../definitions/support.ts'
import { offer } from './support.ts'

const readOnly = { readOnlyHint: true }

it('offers what is included and not excluded, by the names that the server gives', () => {
  const { tools } = judge({ name: 'read_a' }, { name: 'read_b' }, { name: 'write_a' }, { name: 'READ_C' })
  const offered = offer(tools, { include: ['read_*', 'write_?'], exclude: ['*_b'] })
  expect(offered.tools.map(({ name }) => name)).toEqual(['files_read_a', 'files_write_a'])
})

it('offers a renamed tool under its new name alone, and chooses by its own name all the same', () => {
  const { tools } = judge({ name: 'merge_pull_request' }, { name: 'other' })
  const offered = offer(tools, { include: ['merge_*'], override: { merge_pull_request: { name: 'merge' } } })
  expect(offered.tools).toMatchObject([{ name: 'files_merge', definition: { name: 'merge_pull_request' } }])
})

it('judges the risk of a renamed tool by what it is really called', () => {
  const { tools } = judge({ name: 'delete_all', annotations: readOnly })
  expect(offer(tools, { override: { delete_all: { name: 'tidy' } } }).tools).toMatchObject([
    { name: 'files_tidy', risk: 'write', riskFrom: 'name' },
  ])
})

it("takes the operator's description for the pattern, and an override only for the very name", () => {
  const { tools } = judge({ name: 'a', description: 'old' }, { name: 'constructor', description: 'own' })
  const offered = offer(tools, { override: { a: { description: 'new' } } })
  expect(offered.tools.map(({ description }) => description)).toEqual(['new', 'own'])
})

it('gives a name that the operator chose to the tool it was chosen for, whatever the server adds', () => {
  const { tools } = judge({ name: 'merge' }, { name: 'merge_pull_request' })
  const offered = offer(tools, { override: { merge_pull_request: { name: 'merge' } } })
  expect(offered.tools.map(({ name, definition }) => [definition.name, name])).toEqual([
    ['merge', expect.stringMatching(/^files_merge_0[0-9a-v]{12}$/)],
    ['merge_pull_request', 'files_merge'],
  ])
})

it('gives every name to the same tool, in whatever order a server lists its tools', () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const override = { a: { name: 'c' }, b: { name: 'c' }, d: { name: 'e' } }
  const ownersOf = (order: readonly string[]) => {
    const { tools, setAside } = offer(judge(...order.map((name) => ({ name }))).tools, { override })
    expect(setAside).toEqual([])
    expect(new Set(tools.map(({ name }) => name)).size).toBe(names.length)
    return Object.fromEntries(tools.map(({ name, definition }) => [name, definition.name]))
  }
  const first = ownersOf(names)
  fc.assert(
    fc.property(fc.shuffledSubarray(names, { minLength: names.length }), (order) => {
      expect(ownersOf(order)).toEqual(first)
      expect(first).toMatchObject({ files_c: 'a', files_e: 'd' })
    }),
  )
})

it('keeps the order in which the server lists its tools', () => {
  const { tools } = judge({ name: 'z' }, { name: 'a' }, { name: 'm' })
  expect(offer(tools).tools.map(({ name }) => name)).toEqual(['files_z', 'files_a', 'files_m'])
})
