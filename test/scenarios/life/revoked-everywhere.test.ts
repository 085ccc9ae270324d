import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { recording, type Serving, serveWith, until } from '../../cli/support.ts'
import { freshDatabase, runOn } from '../../support/postgres.ts'
import { rounds } from '../../support/rounds.ts'

const key = Buffer.alloc(32, 9).toString('base64')
const config = {
  servers: { rec: recording() },
  rules: [{ tools: '*', action: 'allow' }],
  limits: { changesPerMinute: 100_000, callsPerMinute: 100_000 },
}

/** Two gateways as processes on one database, and a token that both know. */
async function startPair() {
  const databaseUrl = await freshDatabase()
  const env = { SALLYPORT_DATABASE_URL: databaseUrl, SALLYPORT_KEY: key }
  const [here, there] = [await serveWith(env, config), await serveWith(env, config)]
  const { token, id } = (await here.run('tokens', 'create', '--agent', 'reviewer', '--json')).json()
  const ask = async ({ fetch }: Serving) => (await fetch('/api/tools', { token: String(token) })).status
  const call = async ({ fetch }: Serving) =>
    (await fetch('/api/tools/rec_write_thing/call', { method: 'POST', body: { arguments: {} }, token: String(token) }))
      .status
  await until(async () => ((await call(there)) === 200 ? true : undefined))
  return {
    databaseUrl,
    here,
    there,
    ask,
    call,
    revoke: () => here.run('tokens', 'revoke', String(id), '--json'),
    async [Symbol.asyncDispose]() {
      there.child.kill('SIGCONT')
      await Promise.all([here[Symbol.asyncDispose](), there[Symbol.asyncDispose]()])
    },
  }
}

it('refuses a token on every gateway once it was revoked on one', async () => {
  await using pair = await startPair()
  expect(await pair.ask(pair.there)).toBe(200)
  expect((await pair.revoke()).code).toBe(0)
  expect([await pair.ask(pair.there), await pair.call(pair.there), await pair.ask(pair.here)]).toEqual([401, 401, 401])
})

it('would notice a revocation that does not wait until the other gateways have read it', async () => {
  await using pair = await startPair()
  await runOn(pair.databaseUrl, 'update tokens set revoked_at = 1')
  expect(await pair.ask(pair.there)).toBe(200)
})

it('runs no call of a revoked token on a gateway that was asleep meanwhile', async () => {
  await using pair = await startPair()
  pair.there.child.kill('SIGSTOP')
  expect((await pair.revoke()).code).toBe(0)
  const call = pair.call(pair.there)
  pair.there.child.kill('SIGCONT')
  expect([401, 503]).toContain(await call)
})

it('answers every call on the other gateways while somebody makes and revokes tokens without a pause', async () => {
  await using pair = await startPair()
  const administrator = (await readFile(join(pair.here.data, 'admin-token'), 'utf8')).trim()
  const ask = (method: string, path: string, body?: object) =>
    pair.here.fetch(path, { method, token: administrator, ...(body && { body }) })
  let [going, changes] = [true, 0]
  const lanes = Array.from({ length: 6 }, async () => {
    while (going) {
      const { id } = Object(await (await ask('POST', '/api/tokens', { agent: 'busy' })).json())
      changes += (await ask('DELETE', `/api/tokens/${id}`)).ok ? 1 : 0
    }
  })
  const most = rounds(40, 150)
  const answers = new Map<number, number>()
  for (let count = 0; count < most; count++) {
    const status = await pair.call(pair.there)
    answers.set(status, (answers.get(status) ?? 0) + 1)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  going = false
  await Promise.all(lanes)
  expect(changes).toBeGreaterThan(0)
  expect([...answers]).toEqual([[200, most]])
})
