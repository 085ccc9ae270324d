import { describe, expect, it } from 'vitest'
import { toSettings } from '../../src/config/scopes.ts'
import { createViews } from '../../src/config/views.ts'
import { Config } from '../../src/contract/config.ts'
import type { Principal } from '../../src/contract/principal.ts'

const notes = { transport: 'http', url: 'https://notes.example.com' }
const anna: Principal = { kind: 'user', name: 'anna' }
const hers: Principal = { kind: 'agent', name: 'hers', owner: 'anna' }

type Given = { config?: object; administrators?: string[]; servers?: object; owner?: string }

/** How far the server `notes` is trusted when somebody calls it. */
function trustFor(
  principal: Principal,
  { config = {}, administrators = [], servers = { notes }, owner = 'anna' }: Given = {},
) {
  const read = Config.parse({ users: { anna: { servers } }, ...config })
  const session = { servers: {}, rules: [] }
  const settings = toSettings(read, {
    agents: [{ name: 'hers', owner }],
    sessions: [
      { name: 's-own', owner: 'anna', agent: 'hers', ...session },
      { name: 's-project', owner: 'anna', agent: 'hers', project: 'empty', ...session },
    ],
    administrators,
  })
  return createViews(settings).effective(principal).servers.get('notes')?.definition.trust
}

describe('a member’s own server is trusted', () => {
  it.each<[string, Principal]>([
    ['for the member', anna],
    ['for an agent of the member', hers],
    ['for a session of the member', { kind: 'session', name: 's-own' }],
  ])('%s', (_who, principal) => {
    expect(trustFor(principal)).toBe('annotations')
  })
})

describe('a member’s own server is not trusted', () => {
  const project = { projects: { empty: {}, shop: { rules: [{ action: 'ask' }] } } }

  it.each(['empty', 'shop'])('for an agent of the project %s', (name) => {
    expect(trustFor(hers, { config: { ...project, agents: { hers: { project: name } } } })).toBe('none')
  })

  it('for a session in a project, also without settings of the project', () => {
    expect(trustFor({ kind: 'session', name: 's-project' }, { config: project })).toBe('none')
  })

  it('with `members.trustOwn: false`', () => {
    for (const who of [anna, hers]) expect(trustFor(who, { config: { members: { trustOwn: false } } })).toBe('none')
  })

  it('where the member has set `trust: none`', () => {
    expect(trustFor(anna, { servers: { notes: { ...notes, trust: 'none' } } })).toBe('none')
  })

  it('where it refines a server that everybody has, or takes its name for another address', () => {
    const everybody = { servers: { notes: { ...notes, trust: 'none' } } }
    expect(trustFor(anna, { config: everybody, servers: { notes: { description: 'Mine' } } })).toBe('none')
    const other = { notes: { transport: 'http', url: 'https://other.example.com' } }
    expect(trustFor(anna, { config: everybody, servers: other })).toBe('none')
  })

  it('where it takes the name of a server of the agent', () => {
    const agents = { hers: { servers: { notes: { transport: 'stdio', command: 'notes' } } } }
    expect(trustFor(hers, { config: { agents } })).toBe('none')
  })

  it('for an agent of another owner, which has not got it', () => {
    expect(trustFor({ kind: 'agent', name: 'hers', owner: 'ben' }, { owner: 'ben' })).toBeUndefined()
  })
})
