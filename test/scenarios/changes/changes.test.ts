import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Rule } from '../../../src/contract/rule.ts'
import { databases, temporaryFolder } from '../../storage/support.ts'
import { poll } from '../../support/gateway.ts'
import { connectTo } from '../../support/postgres.ts'
import { ada, spare } from './people.ts'
import { createChangeStage, listAuthors, listChanges } from './stage.ts'

const deny = [Rule.parse({ tools: '*', action: 'deny' })]

describe.each(databases)('a change of the configuration on %s', (kind) => {
  it('is recorded with who makes it before it takes effect, and its outcome after', async () => {
    const stage = await createChangeStage(kind)
    const gateway = await stage.start()
    const seen: unknown[] = []
    gateway.events.on('config-changed', ({ changed, by }) => seen.push({ changed, by }))
    const before = Promise.withResolvers<string[]>()
    gateway.events.on('config-changed', () => listAuthors(gateway).then(before.resolve, before.reject))
    await gateway.servers.add(ada, { name: 'spare', definition: spare })
    expect(seen).toEqual([{ changed: ['servers.spare'], by: 'user:ada' }])
    expect((await before.promise)[0]).toContain('user:ada server:spare')
    const [intent, outcome, ...more] = await listChanges(gateway)
    expect(more).toEqual([])
    expect(intent).toMatchObject({
      kind: 'change',
      principal: 'user:ada',
      subject: 'server:spare',
      body: { change: 'added', transport: 'stdio', scope: 'global', changed: ['servers.spare'] },
    })
    expect(outcome).toMatchObject({
      kind: 'change-outcome',
      principal: 'user:ada',
      subject: 'server:spare',
      body: { id: intent?.body.id, state: 'applied' },
    })
  })

  it('keeps an edit of the file in the record when a change through the API follows at once', async () => {
    const stage = await createChangeStage(kind)
    const gateway = await stage.start()
    await stage.write({ naming: 'mcp_{server}_{tool}' })
    await gateway.rules.set(ada, 'global', deny)
    expect(await listAuthors(gateway)).toEqual(['file config applied', 'user:ada rules:global applied'])
    expect(gateway.config.current()).toMatchObject({ naming: 'mcp_{server}_{tool}', rules: [{ action: 'deny' }] })
    await pause(300) // the watcher has looked as well
    expect(await listAuthors(gateway)).toHaveLength(2)
  })

  it('that was made in the file while no gateway ran is recorded at the next start, before anything connects', async () => {
    const stage = await createChangeStage(kind)
    await (await stage.start()).close()
    await stage.write({ servers: { spare }, naming: 'mcp_{server}_{tool}' })
    const gateway = await stage.start()
    expect(await listAuthors(gateway)).toEqual(['file config applied'])
    const [intent] = await listChanges(gateway)
    expect(intent?.body.changed).toEqual(expect.arrayContaining(['naming', 'servers.spare']))
    await gateway.close()
    expect(await listAuthors(await stage.start())).toHaveLength(1)
  })

  it('is none when only comments or the layout differ, running or stopped', async () => {
    const stage = await createChangeStage(kind)
    const gateway = await stage.start()
    await stage.write({}, 'a comment')
    await gateway.config.reload()
    await gateway.close()
    await stage.write({}, 'another comment')
    expect(await listAuthors(await stage.start())).toEqual([])
  })

  it('that the gateway made itself is not taken for an edit of the file at the next start', async () => {
    const stage = await createChangeStage(kind)
    const gateway = await stage.start()
    await gateway.servers.add(ada, { name: 'spare', definition: spare })
    await gateway.close()
    expect(await listAuthors(await stage.start())).toEqual(['user:ada server:spare applied'])
  })

  it('is refused and leaves no trace when it is not valid or not allowed', async () => {
    const stage = await createChangeStage(kind)
    const gateway = await stage.start()
    const auditor = { ...ada, role: 'auditor' as const }
    await expect(gateway.rules.set(auditor, 'global', deny)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(gateway.rules.set(ada, 'project:nowhere', deny)).rejects.toMatchObject({ code: 'request-invalid' })
    expect(await listChanges(gateway)).toEqual([])
  })

  it('does not take effect while it cannot be recorded: not through the API, and not by an edit of the file', async () => {
    const stage = await createChangeStage(kind)
    const gateway = await stage.start()
    const text = await stage.read()
    const unlock = await lockRecord(stage.place)
    await expect(gateway.rules.set(ada, 'global', deny)).rejects.toMatchObject({ code: 'storage-unavailable' })
    expect(gateway.config.current().rules).toEqual([])
    expect(await stage.read()).toBe(text)
    await stage.write({ naming: 'mcp_{server}_{tool}' })
    await pause(500)
    expect(gateway.config.current().naming).toBe('{server}_{tool}')
    await unlock()
    await poll(() => gateway.config.current().naming === 'mcp_{server}_{tool}' || undefined, 40_000)
    expect((await listAuthors(gateway)).at(-1)).toBe('file config applied')
    expect(await listAuthors(gateway)).not.toContain('user:ada rules:global applied')
  })
})

it('records that a change could not be saved', async () => {
  // The file that is written beside it would have a name that is too long.
  const stage = await createChangeStage('SQLite', `${'x'.repeat(245)}.yaml`)
  const gateway = await stage.start()
  await expect(gateway.rules.set(ada, 'global', deny)).rejects.toMatchObject({ code: 'config-unreadable' })
  expect(gateway.config.current().rules).toEqual([])
  const [, outcome] = await listChanges(gateway)
  expect(outcome?.body).toMatchObject({ state: 'not-applied', error: { code: 'config-unreadable' } })
})

it('is made by one of several gateways, and the others name the same author', async () => {
  const stage = await createChangeStage('PostgreSQL')
  const first = await stage.start()
  const second = await stage.start({ dataFolder: temporaryFolder() })
  const heard: unknown[] = []
  second.events.on('config-changed', (event) => heard.push(event))
  await first.rules.set(ada, 'global', deny)
  expect(heard).toEqual([{ changed: ['rules'], by: 'user:ada', elsewhere: true }])
  expect(await listAuthors(second)).toEqual(['user:ada rules:global applied'])
})

it('is recorded as one by the database when somebody writes the text there, running or stopped', async () => {
  const stage = await createChangeStage('PostgreSQL')
  const first = await stage.start()
  const client = await connectTo(stage.place.databaseUrl ?? '')
  onTestFinished(() => client.end())
  const write = (text: string) => client.query("update documents set body = $1 where name = 'config'", [text])
  await write('naming: "mcp_{server}_{tool}"\n')
  await first.config.reload()
  expect(first.config.current().naming).toBe('mcp_{server}_{tool}')
  expect(await listAuthors(first)).toEqual(['database config applied'])
  const second = await stage.start({ dataFolder: temporaryFolder() })
  expect(await listAuthors(second)).toHaveLength(1)
  await Promise.all([first.close(), second.close()])
  await write('naming: "x_{server}_{tool}"\n')
  const third = await stage.start()
  expect(await listAuthors(third)).toEqual(['database config applied', 'database config applied'])
  const intent = (await listChanges(third)).findLast(({ kind }) => kind === 'change')
  expect(intent?.body).toMatchObject({ changed: ['naming'] })
})

it('is never taken for one by the database when two gateways make many at once', async () => {
  const stage = await createChangeStage('PostgreSQL')
  const gateways = [await stage.start(), await stage.start({ dataFolder: temporaryFolder() })]
  const settled = await Promise.allSettled(
    Array.from({ length: 30 }, (_, n) =>
      gateways[n % 2]?.rules.set(ada, 'global', [Rule.parse({ tools: `rec_${n}`, action: 'deny' })]),
    ),
  )
  expect(settled.some(({ status }) => status === 'fulfilled')).toBe(true)
  const [first] = gateways
  if (!first) throw new Error('No gateway was started')
  expect((await listAuthors(first)).filter((author) => author.startsWith('database'))).toEqual([])
})

/** From now on nothing can be written into the record, until the returned function is called. */
async function lockRecord({
  folder,
  databaseUrl,
}: {
  folder: string
  databaseUrl?: string
}): Promise<() => Promise<void>> {
  if (databaseUrl === undefined) {
    const other = new Sqlite(join(folder, 'data', 'sallyport.db'))
    onTestFinished(() => void other.close())
    other.exec('begin immediate')
    return async () => void other.exec('rollback')
  }
  const client = await connectTo(databaseUrl)
  onTestFinished(() => client.end())
  await client.query('begin')
  await client.query('lock table audit in share mode')
  return async () => void (await client.query('rollback'))
}
