import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  findName,
  type NameClaims,
  type NameKey,
  planNames,
  sharedSpace,
  toNameTable,
} from '../../src/catalog/name-table.ts'
import { matchesAny } from '../../src/lib/glob.ts'
import type { StoredName } from '../../src/storage/tables/tool-names.ts'

const suffixed = /_0[0-9a-v]{12}$/
const mia = 'user:user-1'

/** What refers to names in a case: rules of administrators and grants. */
type Case = { servers: readonly string[]; patterns?: readonly string[]; pattern?: string; rows?: readonly StoredName[] }
type Wanted = { readonly space?: string; readonly server: string; readonly tool: string; readonly wanted?: string }

const toKey = ({ space = sharedSpace, server, tool, wanted = tool }: Wanted): NameKey => ({
  space,
  server,
  tool,
  wanted,
})

/** `servers`: the configured ones, as `SPACE SERVER`. Adds the names of the tools to the rows of the case. */
function assign(given: Case, tools: readonly Wanted[], keepEarlier = false) {
  const { servers, pattern = '{server}_{tool}' } = given
  const patterns = (given.patterns ?? []).filter((text) => /[^*]/.test(text))
  const sharedServers = servers.flatMap((place) => (place.startsWith('shared ') ? [place.slice(7)] : []))
  const claims: NameClaims = {
    isNamedExactly: (name) => patterns.some((each) => each === name),
    isNamed: (name) => matchesAny(patterns, name),
    isHeld: ({ space, server, name }) => servers.includes(`${space} ${server}`) || matchesAny(patterns, name),
  }
  const context = { pattern, sharedServers }
  let rows = given.rows ?? []
  // A second time for the tools of members that lost their name to a server of administrators.
  for (let round = 0; round < 2; round++) {
    const table = toNameTable(rows)
    const keys = tools.map(toKey).filter((key) => findName(table, key, context) === undefined)
    const { added, taken } = planNames(table, keys, { context, claims, now: 0, keepEarlier })
    rows = [...rows.filter((row) => !taken.includes(row)), ...added]
  }
  return { rows, names: tools.map((tool) => findName(toNameTable(rows), toKey(tool), context)) }
}

describe('in the scopes of administrators', () => {
  const servers = ['shared a_b', 'shared a']
  const first = { server: 'a_b', tool: 'c' }
  const second = { server: 'a', tool: 'b_c' }

  it('the first tool keeps a name, and the newcomer gets a suffix', () => {
    const { rows, names } = assign({ servers }, [first])
    expect(names).toEqual(['a_b_c'])
    expect(assign({ servers, rows }, [first, second]).names).toEqual(['a_b_c', expect.stringMatching(suffixed)])
    const other = assign({ servers }, [second])
    expect(assign({ servers, rows: other.rows }, [first, second]).names).toEqual([
      expect.stringMatching(suffixed),
      'a_b_c',
    ])
  })

  it('a tool with a suffix keeps it when the name without becomes free', () => {
    const both = assign({ servers, rows: assign({ servers }, [first]).rows }, [first, second])
    const alone = assign({ servers: ['shared a'], rows: both.rows }, [second])
    expect(alone.names).toEqual([both.names[1]])
  })

  it('a removed server gets its names back', () => {
    const before = assign({ servers }, [first, second])
    expect(assign({ servers, rows: before.rows }, [first, second]).names).toEqual(before.names)
  })

  it.each<[what: string, patterns: string[], isFree: boolean]>([
    ['nothing', [], true],
    ['only the pattern for everything', ['*', '**'], true],
    ['a pattern for other names', ['x_*'], true],
    ['the name itself', ['a_b_c'], false],
    ['a pattern', ['a_b_*'], false],
    ['a pattern of any kind', ['*_c'], false],
    ['a question mark', ['?_b_c'], false],
  ])('the name of a removed server is assigned to another tool if it is named by %s: %s', (_, patterns, isFree) => {
    const { rows } = assign({ servers }, [first])
    const [name] = assign({ servers: ['shared a'], rows, patterns }, [second]).names
    if (isFree) expect(name).toBe('a_b_c')
    else expect(name).toMatch(suffixed)
  })

  it('a configured server keeps its names, also when it is not connected or does not offer the tool any more', () => {
    const { rows } = assign({ servers }, [first])
    expect(assign({ servers, rows }, [second]).names[0]).toMatch(suffixed)
  })

  it('the shorter of two servers does not get a name that a rule allows, although it is listed first', () => {
    const patterns = ['a_b_c']
    const { rows, names } = assign({ servers, patterns }, [second])
    expect(names[0]).toMatch(suffixed)
    expect(assign({ servers, patterns, rows }, [first, second]).names).toEqual(['a_b_c', names[0]])
    const { rows: alone } = assign({ servers: ['shared a'], patterns }, [second])
    expect(assign({ servers, patterns, rows: alone }, [second, first]).names).toEqual([
      'a_b_c',
      expect.stringMatching(suffixed),
    ])
  })

  it('a tool that the operator renamed never gets the name of another tool', () => {
    const { rows } = assign({ servers }, [{ server: 'a', tool: 'merge' }])
    const renamed = { server: 'a', tool: 'merge_pull_request', wanted: 'merge' }
    expect(assign({ servers, rows }, [renamed]).names[0]).toMatch(/^a_merge_0[0-9a-v]{12}$/)
    const before = assign({ servers }, [renamed])
    expect(before.names).toEqual(['a_merge'])
    expect(assign({ servers, rows: before.rows }, [{ server: 'a', tool: 'merge' }]).names[0]).toMatch(suffixed)
  })

  it('a name of an earlier pattern is not given to another tool, and is found again with the pattern', () => {
    const { rows } = assign({ servers, pattern: '{server}_{tool}' }, [{ server: 'a', tool: 'mcp_x' }])
    const pattern = 'a_{server}_{tool}'
    const later = assign({ servers: [...servers, 'shared mcp'], rows, pattern }, [{ server: 'mcp', tool: 'x' }])
    expect(later.names[0]).toMatch(suffixed)
    expect(assign({ servers, rows: later.rows }, [{ server: 'a', tool: 'mcp_x' }]).names).toEqual(['a_mcp_x'])
  })

  it('names of earlier versions stay where a rule names them, and change where nothing does', () => {
    const tool = { server: 'my_files', tool: 'read' }
    const places = ['shared my_files', 'shared my']
    const [plain] = assign({ servers: places }, [tool], true).names
    expect(plain).toBe('my_files_read')
    expect(assign({ servers: places, patterns: ['my_files_read_0*'] }, [tool], true).names[0]).toMatch(suffixed)
    expect(assign({ servers: places, patterns: ['my_files_*'] }, [tool], true).names).toEqual(['my_files_read'])
    const rival = { server: 'my', tool: 'files_read' }
    expect(assign({ servers: places, patterns: ['my_files_read'] }, [tool, rival], true).names).toEqual([
      expect.stringMatching(suffixed),
      'my_files_read',
    ])
  })
})

describe('in the scope of a member', () => {
  const own = { space: mia, server: 'git', tool: 'hub_delete' }
  const theirs = { server: 'git_hub', tool: 'delete' }

  it('a name is plain while nothing else is called like that', () => {
    expect(assign({ servers: [`${mia} git`] }, [own]).names).toEqual(['git_hub_delete'])
  })

  it('a name is never that of a tool of an administrator, in whatever order they come', () => {
    const servers = [`${mia} git`, 'shared git_hub']
    const before = assign({ servers }, [own])
    expect(before.names[0]).toMatch(/^own-git_hub_delete_0[0-9a-v]{12}$/)
    const squatted = assign({ servers: [`${mia} git`] }, [own])
    const { rows } = assign({ servers, rows: squatted.rows }, [theirs])
    const after = assign({ servers, rows }, [own, theirs])
    expect(after.names).toEqual([expect.stringMatching(/^own-git_hub_delete_0/), 'git_hub_delete'])
  })

  it('a server with the name of one of administrators has other names for its tools', () => {
    const servers = [`${mia} github`, 'shared github']
    const mine = { space: mia, server: 'github', tool: 'delete_repo' }
    const squatted = assign({ servers: [`${mia} github`] }, [mine])
    expect(squatted.names).toEqual(['github_delete_repo'])
    const { rows } = assign({ servers, rows: squatted.rows }, [{ server: 'github', tool: 'delete_repo' }])
    const after = assign({ servers, rows }, [mine, { server: 'github', tool: 'delete_repo' }])
    expect(after.names).toEqual([expect.stringMatching(/^github_delete_repo_0/), 'github_delete_repo'])
  })

  it('a name that a rule of administrators or a grant contains is not assigned', () => {
    const [name] = assign({ servers: [`${mia} git`], patterns: ['git_hub_delete'] }, [own]).names
    expect(name).toMatch(suffixed)
    expect(name).not.toBe('git_hub_delete')
  })

  it('a pattern for the tools of an administrator does not match it', () => {
    const servers = [`${mia} git`, `${mia} git_evil`, 'shared git_hub', 'shared git']
    const tools = [
      { space: mia, server: 'git', tool: 'hub_x' },
      { space: mia, server: 'git_evil', tool: 'x' },
      { space: mia, server: 'git_evil', tool: 'bad name' },
    ]
    const { names } = assign({ servers }, tools)
    expect(names.filter((name = '') => matchesAny(['git_hub_*'], name))).toEqual([])
    expect(names.slice(1).filter((name = '') => matchesAny(['git_*'], name))).toEqual([])
  })

  it('a suffix cannot be that of a tool of an administrator', () => {
    const tool = { server: 'github', tool: 'a b' }
    const servers = [`${mia} github`, 'shared github']
    const [mine, shared] = assign({ servers }, [{ ...tool, space: mia }, tool]).names
    expect(mine).toMatch(suffixed)
    expect(mine).not.toBe(shared)
  })
})

describe('whatever happens', () => {
  const spaces = [sharedSpace, mia, 'project:shop']
  const place = fc.record({
    space: fc.constantFrom<string>(...spaces),
    server: fc.constantFrom<string>('a', 'a_b', 'a_b_c', 'b'),
  })
  const wanted = fc.record({
    space: fc.constantFrom<string>(...spaces),
    server: fc.constantFrom<string>('a', 'a_b', 'a_b_c', 'b'),
    tool: fc.constantFrom<string>('c', 'b_c', 'b_c_d', 'a_c', 'c d', 'a_b_c'),
    wanted: fc.constantFrom<string | undefined>(undefined, 'c', 'b_c'),
  })
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('list' as const), tools: fc.array(wanted, { maxLength: 4 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), place }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('rule' as const), of: fc.nat() }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('pattern' as const),
        to: fc.constantFrom('{server}_{tool}', 'a_{server}_{tool}'),
      }),
    },
  )

  type Assign = typeof assign
  /** Rules are written for a tool of the shared space, by the name that it has at that moment. */
  function holds(assigning: Assign) {
    return fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      let rows: readonly StoredName[] = []
      let pattern = '{server}_{tool}'
      const servers = new Set<string>()
      const known = new Map<string, Wanted>()
      const meant = new Map<string, string>()
      for (const each of steps) {
        if (each.kind === 'pattern') pattern = each.to
        if (each.kind === 'remove') {
          servers.delete(`${each.place.space} ${each.place.server}`)
          for (const [text, tool] of known) {
            if (tool.space === each.place.space && tool.server === each.place.server) known.delete(text)
          }
        }
        if (each.kind === 'list') {
          for (const { wanted: given, ...tool } of each.tools) {
            servers.add(`${tool.space} ${tool.server}`)
            const whole = { ...tool, ...(given !== undefined && { wanted: given }) }
            known.set(JSON.stringify(whole), whole)
          }
        }
        const all = [...known.values()]
        const given = { servers: [...servers], patterns: [...meant.keys()], pattern, rows }
        const { rows: next, names } = assigning(given, all)
        rows = next
        const shared = all.flatMap((tool, index) =>
          tool.space === sharedSpace ? [{ tool, name: names[index] ?? '' }] : [],
        )
        const chosen = each.kind === 'rule' ? shared[each.of % Math.max(1, shared.length)] : undefined
        if (chosen) meant.set(chosen.name, toOwner(chosen.tool))
        const owners = new Map<string, string>()
        for (const [index, tool] of all.entries()) {
          const name = names[index]
          if (name === undefined) throw new Error(`${toOwner(tool)} has no name`)
          const own = owners.get(`${tool.space} ${name}`) ?? owners.get(`${sharedSpace} ${name}`)
          expect(own ?? toOwner(tool)).toBe(toOwner(tool))
          owners.set(`${tool.space} ${name}`, toOwner(tool))
          expect(meant.get(name) ?? toOwner(tool)).toBe(toOwner(tool))
        }
      }
    })
  }
  const toOwner = ({ space = sharedSpace, server, tool }: Wanted) => `${space} ${server} ${tool}`

  /** A rule is written for a tool. Its server is removed, and another one has a tool that would get its name. */
  const attack = (space: string) => [
    { kind: 'list' as const, tools: [{ space: sharedSpace, server: 'a_b', tool: 'c', wanted: undefined }] },
    { kind: 'rule' as const, of: 0 },
    { kind: 'remove' as const, place: { space: sharedSpace, server: 'a_b' } },
    { kind: 'list' as const, tools: [{ space, server: 'a', tool: 'b_c', wanted: undefined }] },
  ]

  it('a name never means two tools, and what was written for a tool never matches another', () => {
    fc.assert(holds(assign), { numRuns: 300, examples: [[attack(sharedSpace)], [attack(mia)]] })
  })

  it('would, if names were forgotten with their servers', () => {
    const forgetful: Assign = (given, tools) =>
      assign(
        {
          ...given,
          rows: (given.rows ?? []).filter(({ space, server }) => given.servers.includes(`${space} ${server}`)),
        },
        tools,
      )
    expect(fc.check(holds(forgetful), { examples: [[attack(sharedSpace)]] }).failed).toBe(true)
  })

  it('would, if names of members were like those of administrators', () => {
    const trusting: Assign = (given, tools) => {
      const asShared = tools.map((tool) => ({ ...tool, space: sharedSpace }))
      const places = given.servers.map((text) => `shared ${text.split(' ')[1]}`)
      return assign({ ...given, servers: places }, asShared)
    }
    expect(fc.check(holds(trusting), { examples: [[attack(mia)]] }).failed).toBe(true)
  })
})
