import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { restoreBackup } from '../../../src/storage/backup.ts'
import { openPostgresTarget } from '../../../src/storage/postgres/backup.ts'
import { openSqliteTarget } from '../../../src/storage/sqlite/backup.ts'
import { databases, emptyPlaceOn } from '../../storage/support.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { addPerson, sendJson, signIn } from '../../support/people.ts'
import { startListener } from './support.ts'

/**
 * Data of a version that had names in the place of ids: the users ada, lea and kim, each of the last two with a secret, an agent
 * with a token, a session, grants and a waiting approval. Then the agent gone-bot and the user kim were removed.
 */
const backup = fileURLToPath(new URL('../../fixtures/backups/before-identity-ids.backup', import.meta.url))
const facts = {
  kim: {
    token: 'sp_0qvqz4cbck_2-WOtxt4z7X-5PdglRzydOwXlyzr2g4Svb8O0zruw40',
    session: 'sp_f40anew82z_7cw3nqESc7Dpw6ZaFYuFShOfH6WFG05BYVoyiYC1I-c',
    approval: 'approval_1m7nm51kpt4zhjqt1tn',
    call: 'call_1m7nm51kh4w9chhbz3t',
  },
  lea: {
    token: 'sp_qy173tbf8f_-Emcypx-lcrYPgjGSJpAxxJWr-NEDJ3STnPxyT5yC9Q',
    session: 'sp_5qhn141vym_scmJMvruy4MsOHdILBL9LL-GyDDLyzT9ZEl8S_ZwK5w',
    approval: 'approval_1m7nm51nn599bs061hd',
    call: 'call_1m7nm51nk6tjgtt20h0',
  },
  gone: 'sp_vc901tk20r_Ui5Enj42Q2lumL7TcunI0_0362TIj7Bc739nZUUZz9U',
}
const environment = { ...process.env, SALLYPORT_KEY: Buffer.alloc(32, 7).toString('base64') }

describe.each(databases)('data of a version without ids of identities (%s)', (kind) => {
  it('keeps what belongs to those who are there, and nothing of removed ones goes to others of the same names', async () => {
    const { folder, databaseUrl } = await emptyPlaceOn(kind)
    const data = join(folder, 'data')
    mkdirSync(data, { mode: 0o700 })
    const target =
      databaseUrl === undefined ? openSqliteTarget(data, 1) : await openPostgresTarget(databaseUrl, Date.now())
    await restoreBackup({ target, file: backup, clock: systemClock })
    await using listener = await startListener(() => [{ name: 'change', inputSchema: { type: 'object' } }])
    await using gateway = await startTestGateway(
      { environment: ['SHOP_URL'], servers: { shop: { transport: 'http', url: '${SHOP_URL}' } } },
      { folder, databaseUrl, environment: { ...environment, SHOP_URL: listener.url } },
    )
    const as = (token: string) => (method: string, path: string, body?: unknown) =>
      sendJson(gateway, method, path, body, { authorization: `Bearer ${token}` })
    const [ada, lea] = [await signIn(gateway, 'ada'), await signIn(gateway, 'lea')]
    const names = async (who: typeof ada, path: string, key = 'name') =>
      ((await who.request('GET', path)).message.items as Record<string, unknown>[]).map((item) => item[key])

    expect((await as(facts.lea.token)('GET', '/api/tools')).status).toBe(200)
    expect((await as(facts.lea.session)('GET', '/api/tools')).status).toBe(200)
    expect(await names(lea, '/api/agents')).toEqual(['lea-bot'])
    expect(await names(lea, '/api/sessions')).toEqual(['lea-work'])
    expect(await names(lea, '/api/secrets')).toEqual(['KEY'])
    expect(await names(lea, '/api/calls', 'id')).toEqual([facts.lea.call])
    expect(await names(lea, '/api/approvals', 'id')).toEqual([facts.lea.approval])
    // The same call finds its approval again: there is one, not two.
    const again = await as(facts.lea.token)('POST', '/api/tools/shop_change/call', { arguments: {} })
    expect(again.message).toMatchObject({ approval: { id: facts.lea.approval } })
    const answered = await lea.request('POST', `/api/approvals/${facts.lea.approval}/answer`, { verdict: 'approve' })
    expect([answered.status, answered.message.state]).toEqual([200, 'approved'])

    for (const token of [facts.kim.token, facts.kim.session, facts.gone])
      expect((await as(token)('GET', '/api/tools')).status).toBe(401)
    expect(await names(ada, '/api/secrets', 'scope')).toEqual(['user:lea'])
    const { items: grants } = (await ada.request('GET', '/api/grants')).message
    const valid = (grants as { revokedAt?: string; scope?: string }[]).filter(
      ({ revokedAt }) => revokedAt === undefined,
    )
    const scopes = valid.flatMap(({ scope }) => scope ?? [])
    expect(scopes).toEqual(['user:lea'])

    const kim = await addPerson(gateway, ada, 'kim', 'member')
    for (const path of ['secrets', 'agents', 'sessions', 'tokens', 'grants', 'approvals', 'calls'])
      expect([path, (await kim.request('GET', `/api/${path}`)).message.items]).toEqual([path, []])
    for (const name of ['kim-bot', 'gone-bot']) {
      const made = await kim.request('POST', '/api/tokens', { agent: name })
      expect([name, made.status]).toEqual([name, 201])
    }
    for (const token of [facts.kim.token, facts.kim.session, facts.gone])
      expect((await as(token)('GET', '/api/tools')).status).toBe(401)
    const removed = await ada.request('DELETE', '/api/users/lea')
    expect(removed.status).toBe(200)
    expect((await as(facts.lea.token)('GET', '/api/tools')).status).toBe(401)
    expect((await as(facts.lea.session)('GET', '/api/tools')).status).toBe(401)
  })
})
