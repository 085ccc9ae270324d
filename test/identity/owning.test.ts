import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import type { Principal } from '../../src/contract/principal.ts'
import type { SessionServers } from '../../src/contract/session.ts'
import { databases, placeOn } from '../storage/support.ts'
import { changesOf, openIdentity, password, refusalOf, start } from './support.ts'

const hour = 3_600_000
const configured = {
  hasAgent: (name: string) => name === 'deployer',
  findProjectOwners: (name: string) => (name === 'shop' ? ['bob'] : undefined),
  judgeServers(_by: object, _session: object, servers: object) {
    if ('x' in servers) throw new GatewayError('forbidden', 'x may not be stated')
  },
  storeLiterals: async (_by: object, _session: string, servers: SessionServers) => ({
    servers,
    secrets: [],
    warnings: [],
    undo: async () => undefined,
  }),
}

describe.each(databases)('on %s', (kind) => {
  async function stage() {
    const opened = await openIdentity({ place: await placeOn(kind), configured })
    const { principal: ada } = await opened.signIn('ada')
    const bob = await opened.person('bob', 'member')
    const kim = await opened.person('kim', 'member')
    return { ...opened, ada, bob, kim }
  }

  describe('an agent', () => {
    it('belongs to whoever makes its first token, and nobody else may make another', async () => {
      const { identity, bob, kim, ada } = await stage()
      const { token } = await identity.tokens.create(bob, { agent: 'reviewer' })
      expect(identity.authenticate(token)).toMatchObject({ kind: 'agent', name: 'reviewer', owner: 'bob' })
      expect((await refusalOf(() => identity.tokens.create(kim, { agent: 'reviewer' }))).code).toBe('forbidden')
      expect((await identity.tokens.create(ada, { agent: 'reviewer' })).owner).toBe('bob')
      expect(identity.agents.list(bob)).toMatchObject([{ name: 'reviewer', owner: 'bob', tokens: 2 }])
      expect(identity.agents.list(kim)).toEqual([])
      expect(identity.tokens.list(kim)).toEqual([])
      expect(identity.tokens.list(bob)).toHaveLength(2)
    })

    it('that the configuration speaks of is for an administrator to make', async () => {
      const { identity, bob, ada } = await stage()
      expect((await refusalOf(() => identity.tokens.create(bob, { agent: 'deployer' }))).code).toBe('forbidden')
      expect((await refusalOf(() => identity.agents.add(bob, { name: 'deployer' }))).code).toBe('name-taken')
      await identity.agents.add(ada, { name: 'deployer', owner: 'bob' })
      expect((await identity.tokens.create(bob, { agent: 'deployer' })).agent).toBe('deployer')
    })

    it('is added once, however many make its first token at the same time', async () => {
      const { identity, bob } = await stage()
      const made = await Promise.all(Array.from({ length: 5 }, () => identity.tokens.create(bob, { agent: 'many' })))
      expect(new Set(made.map(({ id }) => id)).size).toBe(5)
      expect(identity.agents.list(bob)).toMatchObject([{ name: 'many', tokens: 5 }])
    })

    it('is given to somebody else by administrators only, and its open tokens know at once', async () => {
      const { identity, bob, kim, ada } = await stage()
      const { token } = await identity.tokens.create(bob, { agent: 'reviewer' })
      const held = identity.authenticate(token)
      expect((await refusalOf(() => identity.agents.change(bob, 'reviewer', { owner: 'kim' }))).code).toBe('forbidden')
      expect((await refusalOf(() => identity.agents.change(kim, 'reviewer', { owner: 'kim' }))).code).toBe('not-found')
      expect((await refusalOf(() => identity.agents.change(ada, 'reviewer', { owner: 'nobody' }))).code).toBe(
        'request-invalid',
      )
      await identity.agents.change(ada, 'reviewer', { owner: 'kim', description: 'Looks at changes' })
      expect(held.owner).toBe('kim')
      expect(identity.agents.list(kim)).toMatchObject([{ name: 'reviewer', description: 'Looks at changes' }])
    })

    it('takes its tokens and sessions with it when it is removed, and a new one of its name has nothing of it', async () => {
      const { identity, bob, kim, remove } = await stage()
      const { token } = await identity.tokens.create(bob, { agent: 'reviewer' })
      const session = await identity.sessions.create(bob, { agent: 'reviewer' })
      expect((await refusalOf(() => remove(kim, 'agent', 'reviewer'))).code).toBe('not-found')
      await remove(bob, 'agent', 'reviewer')
      for (const text of [token, session.token])
        expect((await refusalOf(() => identity.authenticate(text))).code).toBe('token-invalid')
      const { token: another } = await identity.tokens.create(kim, { agent: 'reviewer' })
      expect(identity.authenticate(another)).toMatchObject({ name: 'reviewer', owner: 'kim' })
      for (const text of [token, session.token])
        expect((await refusalOf(() => identity.authenticate(text))).code).toBe('token-invalid')
    })

    it('does not exist if it was added in the moment in which its owner was removed', async () => {
      const { identity, bob, ada, kim, remove, storage } = await stage()
      await remove(ada, 'user', 'bob')
      const late = { id: 'agent_late', name: 'late', ownerId: bob.id ?? '', createdAt: start }
      await storage.agents.add({ agent: late, change: { principal: 'user:bob', subject: 'agent:late', body: {} } })
      await storage.changes.announce('tokens')
      await identity.users.add(ada, { name: 'bob', role: 'member', password })
      expect(identity.agents.list(ada)).toEqual([])
      // It must not look like an agent without an owner either: those belong to the administrators.
      expect(identity.roster().agents).toEqual([])
      expect((await refusalOf(() => identity.agents.change(kim, 'late', { owner: 'kim' }))).code).toBe('not-found')
    })

    it('is refused while its owner is disabled or removed, and works again with the owner', async () => {
      const { identity, bob, ada, remove } = await stage()
      const { token } = await identity.tokens.create(bob, { agent: 'reviewer' })
      const { token: inSession } = await identity.sessions.create(bob, {})
      const told: Principal[] = []
      identity.onRevoked((principal) => void told.push(principal))
      await identity.users.change(ada, 'bob', { disabled: true })
      for (const text of [token, inSession]) {
        const refused = await refusalOf(() => identity.authenticate(text))
        expect(refused).toMatchObject({ code: 'token-invalid', message: expect.stringContaining('bob') })
      }
      expect(told.map((principal) => principal.kind).sort()).toEqual(['agent', 'session', 'user'])
      await identity.users.change(ada, 'bob', { disabled: false })
      expect(identity.authenticate(token)).toMatchObject({ name: 'reviewer' })
      await remove(ada, 'user', 'bob')
      expect((await refusalOf(() => identity.authenticate(token))).code).toBe('token-invalid')
    })
  })

  describe('a session', () => {
    it('has a token of its own, a project, an owner and a choice of servers', async () => {
      const { identity, bob, storage } = await stage()
      await identity.tokens.create(bob, { agent: 'reviewer' })
      const servers = { files: { enabled: false } }
      const made = await identity.sessions.create(bob, { agent: 'reviewer', project: 'shop', servers })
      expect(made).toMatchObject({ owner: 'bob', agent: 'reviewer', project: 'shop', servers, state: 'open' })
      expect(made.name).toMatch(/^reviewer-[0-9a-z]{10}$/)
      expect(identity.authenticate(made.token)).toMatchObject({
        kind: 'session',
        name: made.name,
        owner: 'bob',
        project: 'shop',
      })
      expect(identity.findSession(made.name)).toMatchObject({ owner: 'bob', project: 'shop', servers })
      expect(await changesOf(storage, `session:${made.name}`)).toMatchObject([
        { principal: 'user:bob', action: 'session-created', servers: ['files'] },
      ])
    })

    it("inherits only what is its maker's to give", async () => {
      const { identity, bob, kim, ada } = await stage()
      await identity.tokens.create(bob, { agent: 'reviewer' })
      const make = (wanted: object, by: Principal) => refusalOf(() => identity.sessions.create(by, wanted))
      expect((await make({ agent: 'reviewer' }, kim)).code).toBe('not-found')
      expect((await make({ agent: 'unknown' }, kim)).code).toBe('not-found')
      expect((await make({ project: 'shop' }, kim)).code).toBe('forbidden')
      expect((await make({ project: 'nowhere' }, kim)).code).toBe('not-found')
      expect((await make({ owner: 'bob' }, kim)).code).toBe('forbidden')
      expect((await make({ servers: { x: { transport: 'stdio', command: 'sh' } } }, kim)).code).toBe('forbidden')
      expect((await identity.sessions.create(ada, { project: 'shop', owner: 'kim' })).owner).toBe('kim')
    })

    it('ends at once, before that is written, and with it every token it has', async () => {
      const { identity, bob, kim } = await stage()
      const made = await identity.sessions.create(bob, { name: 'night' })
      const { token: second } = await identity.tokens.create(bob, { session: 'night' })
      expect((await refusalOf(() => identity.tokens.create(kim, { session: 'night' }))).code).toBe('not-found')
      expect((await refusalOf(() => identity.sessions.end(kim, 'night'))).code).toBe('not-found')
      const told: Principal[] = []
      identity.onRevoked((principal) => void told.push(principal))
      const ending = identity.sessions.end(bob, 'night')
      await ending
      for (const text of [made.token, second])
        expect((await refusalOf(() => identity.authenticate(text))).code).toBe('token-invalid')
      expect(told).toHaveLength(2)
      expect(identity.findSession('night')).toBeUndefined()
      expect(await identity.sessions.get(bob, 'night')).toMatchObject({ state: 'ended' })
      expect((await refusalOf(() => identity.sessions.update(bob, 'night', { servers: {} }))).code).toBe('not-found')
      expect((await refusalOf(() => identity.tokens.create(bob, { session: 'night' }))).code).toBe('not-found')
      expect((await refusalOf(() => identity.sessions.create(bob, { name: 'night' }))).code).toBe('name-taken')
    })

    it('expires by itself, and its tokens with it', async () => {
      const { identity, bob, time } = await stage()
      const made = await identity.sessions.create(bob, { expiresAt: new Date(start + hour).toISOString() })
      const late = new Date(start + 9 * hour).toISOString()
      const { token: second } = await identity.tokens.create(bob, { session: made.name, expiresAt: late })
      await identity.sessions.update(bob, made.name, { expiresAt: new Date(start + 2 * hour).toISOString() })
      time.now = start + 2 * hour - 1
      expect(identity.authenticate(made.token)).toMatchObject({ name: made.name })
      time.now += 1
      for (const text of [made.token, second])
        expect((await refusalOf(() => identity.authenticate(text))).code).toBe('token-invalid')
      expect(await identity.sessions.get(bob, made.name)).toMatchObject({ state: 'expired' })
      expect(await identity.sessions.list(bob, true)).toHaveLength(1)
    })

    it('is seen by its owner and by those who oversee, and changed by its owner', async () => {
      const { identity, bob, kim, ada, person } = await stage()
      const auditor = await person('aud', 'auditor')
      const { name } = await identity.sessions.create(bob, {})
      expect(await identity.sessions.list(bob)).toHaveLength(1)
      expect(await identity.sessions.list(kim)).toEqual([])
      expect(await identity.sessions.list(auditor)).toHaveLength(1)
      expect((await refusalOf(() => identity.sessions.get(kim, name))).code).toBe('not-found')
      expect((await refusalOf(() => identity.sessions.end(auditor, name))).code).toBe('not-found')
      const servers = { files: { enabled: false } }
      expect(await identity.sessions.update(ada, name, { servers })).toMatchObject({ servers })
      expect(identity.findSession(name)?.servers).toEqual(servers)
    })
  })

  it('knows everybody again after a restart', async () => {
    const place = await placeOn(kind)
    const first = await openIdentity({ place, configured })
    const bob = await first.person('bob', 'member')
    const { token } = await first.identity.tokens.create(bob, { agent: 'reviewer' })
    const session = await first.identity.sessions.create(bob, { project: 'shop' })
    await first.storage.close()
    const second = await openIdentity({ place, configured, first: false })
    expect(second.identity.users.list().map(({ name, role }) => [name, role])).toEqual([
      ['ada', 'administrator'],
      ['bob', 'member'],
    ])
    expect(second.identity.authenticate(token)).toMatchObject({ kind: 'agent', name: 'reviewer', owner: 'bob' })
    expect(second.identity.authenticate(session.token)).toMatchObject({ project: 'shop', owner: 'bob' })
    expect((await second.signIn('bob', password)).principal).toMatchObject({ role: 'member' })
  })

  it('always keeps one administrator, also when two take each other out at once', async () => {
    const { identity, person, ada } = await stage()
    const eve = await person('eve', 'administrator')
    const ended = await Promise.allSettled([
      identity.users.change(ada, 'eve', { role: 'member' }),
      identity.users.change(eve, 'ada', { disabled: true }),
    ])
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })
})
