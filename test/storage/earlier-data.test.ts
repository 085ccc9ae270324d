import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ada, helper, mia } from '../scenarios/approvals/stage.ts'
import { before, factsOf, fillSqlite, fixture, openEarlier } from './earlier-data.ts'
import { databases, open, temporaryFolder } from './support.ts'

it('keeps every migration as it was when it was released', () => {
  const digest = createHash('sha256').update(JSON.stringify(before)).digest('hex')
  expect(digest).toBe(factsOf('SQLite').migrations)
})

it('copies a SQLite database before it is migrated, readable by its owner only', async () => {
  const folder = temporaryFolder()
  fillSqlite(join(folder, 'sallyport.db'), await readFile(fixture('SQLite', 'rows.sql'), 'utf8'))
  await open(folder)
  const copies = (await readdir(folder)).filter((name) => name.includes('before'))
  expect(copies).toEqual(['sallyport.before-15.db'])
  const copy = join(folder, 'sallyport.before-15.db')
  expect((await stat(copy)).mode & 0o777).toBe(0o600)
  const database = new Sqlite(copy, { readonly: true })
  onTestFinished(() => void database.close())
  expect(database.prepare('select max(id) from migrations').pluck().get()).toBe(14)
  expect(database.prepare('select count(*) from calls').pluck().get()).toBe(15)
})

it('makes no copy of a new or a current SQLite database', async () => {
  const folder = temporaryFolder()
  await (await open(folder)).close()
  await open(folder)
  expect((await readdir(folder)).filter((name) => name.includes('before'))).toEqual([])
})

describe.each(databases)('data of an earlier version on %s', (kind) => {
  const facts = factsOf(kind)

  it('open with everybody who was known', async () => {
    const { identity, users, agents } = await openEarlier(kind)
    expect(users.list().map(({ name, role }) => `${name} ${role}`)).toEqual([
      'ada administrator',
      'bob administrator',
      'gus member',
      'ivy auditor',
      'mia member',
    ])
    expect(agents.list(ada).map(({ name, owner }) => `${name} of ${owner}`)).toEqual(['helper of mia'])
    expect(identity.authenticate(facts.token)).toMatchObject({ kind: 'agent', name: 'helper', owner: 'mia' })
    expect(identity.authenticate(facts.session)).toMatchObject({ kind: 'session', name: 'nightly' })
    expect(await identity.signIns.authenticate(facts.signIn.cookie)).toMatchObject({ kind: 'user', name: 'mia' })
  })

  it('open with every approval in its state, and an approved call that was not made again runs', async () => {
    const gateway = await openEarlier(kind)
    for (const { id, state } of Object.values(facts.approvals)) {
      expect(await gateway.approvals.get(ada, id)).toMatchObject({ id, state })
    }
    const waiting = facts.approvals.waiting?.id ?? ''
    expect(await gateway.approvals.answer(mia, waiting, { verdict: 'deny' })).toMatchObject({ state: 'denied' })
  })

  it('open with the grants and what is left of them', async () => {
    const gateway = await openEarlier(kind)
    const { items } = await gateway.grants.list(ada, { limit: 10 })
    const byId = new Map(items.map((grant) => [grant.id, grant]))
    expect(byId.get(facts.grants.grant)).toMatchObject({ tools: 'files_write_*', budget: 3, used: 0 })
    expect(byId.get(facts.grants.revoked)?.revokedAt).toBeDefined()
    expect(items.map(({ used }) => used).toSorted()).toEqual([0, 0, 1])
  })

  it('open with secrets, pins, kept results, keys of calls and deliveries', async () => {
    const gateway = await openEarlier(kind, facts.now - 3_600_000) // when the result was kept
    expect((await gateway.secrets.list(ada)).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['HOOK', 'SHARED']),
    )
    expect(gateway.pins.list(ada, { state: ['changed'] }).map(({ name }) => name)).toEqual(['plain_thing'])
    expect(gateway.pins.list(ada, { state: ['blocked'] }).map(({ name }) => name)).toEqual(['both_thing'])
    // The configuration names the event `question-asked`, as it was called then.
    expect((await gateway.webhooks.list())[0]).toMatchObject({
      name: 'chat',
      state: 'ready',
      events: expect.arrayContaining(['approval-requested']),
    })
    const read = await gateway.calls.run(
      {
        principal: helper,
        surface: 'library',
        selector: { kind: 'all' },
        name: 'sallyport_read_result',
        arguments: { handle: facts.handle, offset: 1024 },
      },
      { signal: new AbortController().signal },
    )
    expect(read.kind === 'refused' ? read.error.message : read.kind).toBe('answered')
  })

  it('open with every call and a record that verifies', async () => {
    const gateway = await openEarlier(kind)
    expect(await gateway.calls.find(facts.ok)).toMatchObject({ id: facts.ok, state: 'ok', tool: 'files_echo' })
    const { items } = await gateway.calls.list({ limit: 50 })
    expect(items).toHaveLength(15)
    expect(await gateway.audit.verify(AbortSignal.timeout(30_000))).toMatchObject({ clean: true })
  })

  it('open with entries about approvals, which had another kind then', async () => {
    const gateway = await openEarlier(kind)
    const { items } = await gateway.audit.list({ limit: 50, kind: 'approval' })
    expect(items.map((entry) => entry.kind)).toContain('question')
    expect((await gateway.calls.find(facts.ok))?.waitedMs).toBeUndefined()
    expect((await gateway.calls.list({ limit: 50 })).items.some(({ waitedMs = 0 }) => waitedMs > 0)).toBe(true)
  })
})
