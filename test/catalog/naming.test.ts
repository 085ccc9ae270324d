import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toPublicDescription, toPublicName } from '../../src/catalog/naming.ts'

type Naming = (pattern: string, server: string, tool: string) => string
type Pair = { readonly server: string; readonly tool: string }

const patterns = [
  '{server}_{tool}',
  'mcp_{server}_{tool}',
  '{tool}__{server}',
  '{server}-_-{tool}',
  'x_{tool}_by_{server}_y',
]
const fits = /^[A-Za-z0-9_-]{1,64}$/

/** Few letters, so that names meet often; the ones that matter among them. */
const servers = fc.oneof(
  fc.stringMatching(/^[ab0][ab0_.-]{0,5}$/),
  fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
)
const tools = fc.oneof(
  fc.stringMatching(/^[ab0_./ -]{1,8}$/),
  fc.stringMatching(/^[\x20-\x7e]{1,128}$/),
  fc
    .tuple(fc.constantFrom('a', 'a_b', 'b'.repeat(70)), fc.stringMatching(/^_0[0-9a-v]{12}$/))
    .map((parts) => parts.join('')),
)
const pairs = fc.record({ server: servers, tool: tools })

/** All ways to take one public name for that of another server's tool. */
function otherReadings(name: string): Pair[] {
  return [...name.matchAll(/[_-]/g)].map(({ index }) => ({ server: name.slice(0, index), tool: name.slice(index + 1) }))
}

function neverMeet(naming: Naming) {
  return fc.property(fc.constantFrom(...patterns), pairs, pairs, (pattern, one, other) => {
    const name = naming(pattern, one.server, one.tool)
    const imitations = otherReadings(name).filter(({ server, tool }) => server !== '' && tool !== '')
    const strangers = [other, ...imitations].filter(({ server, tool }) => server !== one.server || tool !== one.tool)
    for (const { server, tool } of strangers) expect(naming(pattern, server, tool)).not.toBe(name)
  })
}

describe('public names', () => {
  it('fit into 64 letters, digits, underscores and dashes, whatever servers and tools are called', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), pairs, (pattern, { server, tool }) => {
        expect(toPublicName(pattern, server, tool)).toMatch(fits)
      }),
      { numRuns: 2000 },
    )
  })

  it('never meet, also when one is made to be taken for another', () => {
    fc.assert(neverMeet(toPublicName), { numRuns: 5000 })
  })

  it('would meet if the two names were merely joined', () => {
    const joined: Naming = (pattern, server, tool) =>
      pattern
        .replace('{server}', server)
        .replace('{tool}', tool)
        .replace(/[^A-Za-z0-9_-]/g, '_')
        .slice(0, 64)
    expect(fc.check(neverMeet(joined), { numRuns: 5000 }).failed).toBe(true)
  })

  it.each<[string, Pair, Pair]>([
    ['the underscore may belong to either', { server: 'a_b', tool: 'c' }, { server: 'a', tool: 'b_c' }],
    ['characters are replaced', { server: 'a', tool: 'b.c' }, { server: 'a', tool: 'b/c' }],
    ['a replaced one meets a real one', { server: 'a', tool: 'b.c' }, { server: 'a', tool: 'b_c' }],
    ['long ends are cut', { server: 'a', tool: `${'b'.repeat(80)}1` }, { server: 'a', tool: `${'b'.repeat(80)}2` }],
    ['the server is cut', { server: `${'s'.repeat(63)}1`, tool: 't' }, { server: `${'s'.repeat(63)}2`, tool: 't' }],
    ['letters differ in case only', { server: 'a', tool: 'B' }, { server: 'a', tool: 'b' }],
    ['empty parts', { server: 'a', tool: '_' }, { server: 'a_', tool: '' }],
    // Found by looking for them for ten seconds, when the suffix had forty bits.
    [
      'they were searched for',
      { server: 's', tool: `${'a'.repeat(60)}tfki` },
      { server: 's', tool: `${'a'.repeat(60)}17i47` },
    ],
  ])('stay apart when %s', (_, one, other) => {
    for (const pattern of patterns) {
      expect(toPublicName(pattern, one.server, one.tool)).not.toBe(toPublicName(pattern, other.server, other.tool))
    }
  })

  it('stay apart when a tool is called like the suffixed name of another', () => {
    for (const pattern of patterns) {
      const suffixed = toPublicName(pattern, 'a', 'b.c')
      for (const tool of [suffixed, suffixed.slice('a_'.length), suffixed.slice('mcp_a_'.length)]) {
        expect(toPublicName(pattern, 'a', tool)).not.toBe(suffixed)
      }
    }
  })

  it('stay exactly what people expect for ordinary names', () => {
    const ordinary = fc.stringMatching(/^[a-z][a-z0-9-]{0,19}$/)
    const word = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,30}$/).filter((tool) => !/_0[0-9a-v]{12}$/.test(tool))
    fc.assert(
      fc.property(ordinary, word, (server, tool) => {
        expect(toPublicName('{server}_{tool}', server, tool)).toBe(`${server}_${tool}`)
        expect(toPublicName('mcp_{server}_{tool}', server, tool)).toBe(`mcp_${server}_${tool}`)
        expect(toPublicName('{tool}__{server}', server, tool)).toBe(`${tool}__${server}`)
      }),
    )
  })

  it('depend on nothing but pattern, server and tool', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), fc.array(pairs, { minLength: 1 }), (pattern, listed) => {
        const before = listed.map(({ server, tool }) => toPublicName(pattern, server, tool))
        const after = listed.toReversed().map(({ server, tool }) => toPublicName(pattern, server, tool))
        expect(after.toReversed()).toEqual(before)
      }),
    )
  })

  it('keep the readable part in front of the suffix', () => {
    expect(toPublicName('{server}_{tool}', 'my_files', 'read.file')).toMatch(/^my_files_read_file_0[0-9a-v]{12}$/)
  })
})

it('fills a description pattern once, so that a server cannot write placeholders', () => {
  const facts = { server: 'files', tool: 'read', description: 'Reads {server} and {tool}' }
  expect(toPublicDescription('[{server}] {description}', facts)).toBe('[files] Reads {server} and {tool}')
})
