import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type NameKey, nameAlone, sharedSpace } from '../../src/catalog/name-table.ts'
import { couldBeOf, toApartName, toEarlierName, toPlainName, toPublicDescription } from '../../src/catalog/naming.ts'

type Pair = { readonly server: string; readonly tool: string }

const patterns = [
  '{server}_{tool}',
  'mcp_{server}_{tool}',
  '{tool}__{server}',
  '{server}-_-{tool}',
  'x_{tool}_by_{server}_y',
]
const fits = /^[A-Za-z0-9_-]{1,64}$/
const suffixed = /_0[0-9a-v]{12}$/

/** Few letters, so that names often collide. */
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

const toKey = ({ server, tool }: Pair): NameKey => ({ space: sharedSpace, server, tool, wanted: tool })

/** The names of tools that get names together, without any that is stored. */
function namesOf(pattern: string, tools: readonly Pair[]): (string | undefined)[] {
  const keys = tools.map(toKey)
  return keys.map(nameAlone(pattern, keys))
}

describe('a public name without a suffix', () => {
  it.each<[pattern: string, server: string, tool: string, name: string]>([
    ['{server}_{tool}', 'github', 'create_issue', 'github_create_issue'],
    ['{server}_{tool}', 'my_files', 'read', 'my_files_read'],
    ['mcp_{server}_{tool}', 'web_search', 'search', 'mcp_web_search_search'],
    ['{server}_{tool}', 'browser', 'browser_click', 'browser_click'],
    ['{server}_{tool}', 'browser', 'browser-click', 'browser_click'],
    ['{server}_{tool}', 'browser', 'browser.click', 'browser_click'],
    ['{server}__{tool}', 'browser', 'browser_click', 'browser__click'],
    ['mcp_{server}_{tool}', 'browser', 'browser_click', 'mcp_browser_click'],
    ['{server}_{tool}', 'browser', 'browser', 'browser_browser'],
    ['{server}_{tool}', 'browser', 'browser_', 'browser_browser_'],
    ['{server}_{tool}', 'browser', 'browsers', 'browser_browsers'],
    ['{server}_{tool}', 'browser', 'Browser_click', 'browser_Browser_click'],
    ['{server}_{tool}', 'a', 'B', 'a_B'],
    ['{tool}__{server}', 'files', 'read', 'read__files'],
  ])('with %s, %s and %s is %s', (pattern, server, tool, name) => {
    expect(toPlainName(pattern, { server, tool })).toBe(name)
    expect(namesOf(pattern, [{ server, tool }])).toEqual([name])
  })

  it.each<[why: string, server: string, tool: string]>([
    ['a character must be replaced', 'a', 'b c'],
    ['a character of the server must be replaced', 'a.b', 'c'],
    ['it is too long', 'a', 'b'.repeat(63)],
    ['it looks like a name with a suffix', 'a', 'b_0123456789abc'],
    ["it looks like one of the gateway's own tools", 'sallyport_read', 'result'],
  ])('is not possible if %s', (_, server, tool) => {
    expect(toPlainName('{server}_{tool}', { server, tool })).toBeUndefined()
    const [name = ''] = namesOf('{server}_{tool}', [{ server, tool }])
    expect(name).toMatch(suffixed)
    expect(name).toMatch(fits)
    expect(name).not.toMatch(/^sallyport_/)
  })
})

describe('public names', () => {
  it('fit into 64 letters, digits, underscores and dashes, and never collide', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), fc.array(pairs, { minLength: 1, maxLength: 8 }), (pattern, listed) => {
        const distinct = [...new Map(listed.map((pair) => [JSON.stringify(pair), pair])).values()]
        const names = namesOf(pattern, distinct)
        for (const name of names) expect(name).toMatch(fits)
        expect(new Set(names).size).toBe(distinct.length)
      }),
      { numRuns: 2000 },
    )
  })

  it('do not depend on the order in which a server lists its tools', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), fc.array(pairs, { minLength: 2, maxLength: 5 }), (pattern, listed) => {
        expect(namesOf(pattern, listed.toReversed()).toReversed()).toEqual(namesOf(pattern, listed))
      }),
      { numRuns: 300 },
    )
  })

  it.each<[string, Pair, Pair]>([
    ['the underscore may belong to either', { server: 'a_b', tool: 'c' }, { server: 'a', tool: 'b_c' }],
    ['one is not prefixed again', { server: 'a', tool: 'b' }, { server: 'a', tool: 'a_b' }],
    ['characters are replaced', { server: 'a', tool: 'b c' }, { server: 'a', tool: 'b/c' }],
    ['a replaced one equals a real one', { server: 'a', tool: 'b c' }, { server: 'a', tool: 'b_c' }],
    ['long ends are cut', { server: 'a', tool: `${'b'.repeat(80)}1` }, { server: 'a', tool: `${'b'.repeat(80)}2` }],
    ['the server is cut', { server: `${'s'.repeat(63)}1`, tool: 't' }, { server: `${'s'.repeat(63)}2`, tool: 't' }],
    ['letters differ in case only', { server: 'a', tool: 'B' }, { server: 'a', tool: 'b' }],
    // Found by looking for them for ten seconds, when the suffix had forty bits.
    [
      'they were searched for',
      { server: 's', tool: `${'a'.repeat(60)}tfki` },
      { server: 's', tool: `${'a'.repeat(60)}17i47` },
    ],
  ])('differ when %s', (_, one, other) => {
    for (const pattern of patterns) {
      const names = namesOf(pattern, [one, other])
      expect(new Set(names).size).toBe(2)
    }
  })

  it('differ when a tool is called like the suffixed name of another', () => {
    for (const pattern of patterns) {
      const odd = { server: 'a', tool: 'b c' }
      const [name = ''] = namesOf(pattern, [odd])
      for (const tool of [name, name.slice('a_'.length), name.slice('mcp_a_'.length)]) {
        expect(namesOf(pattern, [odd, { server: 'a', tool }])[1]).not.toBe(name)
      }
    }
  })

  it('keep the readable part before the suffix', () => {
    expect(namesOf('{server}_{tool}', [{ server: 'my_files', tool: 'read file' }])[0]).toMatch(
      /^my_files_read_file_0[0-9a-v]{12}$/,
    )
  })
})

describe('a name that looks like one of another server', () => {
  it('is recognised with every pattern, and a name that is set apart is none', () => {
    for (const pattern of patterns) {
      const name = toPlainName(pattern, { server: 'git', tool: 'hub_delete' }) ?? ''
      expect(couldBeOf(pattern, 'git', name)).toBe(true)
      expect(couldBeOf(pattern, 'other', name)).toBe(false)
      const apart = toApartName(pattern, { server: 'git', tool: 'hub_delete' }, 'user')
      for (const server of ['git', 'git_hub', 'delete_git']) expect(couldBeOf(pattern, server, apart)).toBe(false)
      expect(apart).toMatch(fits)
    }
    expect(couldBeOf('{server}_{tool}', 'git_hub', 'git_hub_delete')).toBe(true)
    expect(couldBeOf('{server}_{tool}', 'git_hub', 'git_hub_')).toBe(false)
  })
})

it('knows the names that earlier versions gave', () => {
  expect(toEarlierName('{server}_{tool}', { server: 'files', tool: 'read' })).toBe('files_read')
  expect(toEarlierName('{server}_{tool}', { server: 'browser', tool: 'browser_click' })).toBe('browser_browser_click')
  expect(toEarlierName('{server}_{tool}', { server: 'my_files', tool: 'read.file' })).toMatch(
    /^my_files_read_file_0[0-9a-v]{12}$/,
  )
})

it('fills a description pattern once, so that a server cannot write placeholders', () => {
  const facts = { server: 'files', tool: 'read', description: 'Reads {server} and {tool}' }
  expect(toPublicDescription('[{server}] {description}', facts)).toBe('[files] Reads {server} and {tool}')
})
