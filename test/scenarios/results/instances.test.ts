import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { allowAll, temporaryFolder } from '../mcp/raw.ts'

it('runs a call with a key once and gives the rest of a result, whichever of two gateways is asked', async () => {
  await using folder = await temporaryFolder()
  const record = join(folder.path, 'record')
  const config = {
    servers: { rec: stdioFixture('recording', ['--record', record]) },
    rules: allowAll,
    limits: { result: 2000 },
  }
  const databaseUrl = await freshDatabase()
  await using one = await startTestGateway(config, { databaseUrl })
  const token = await one.token('agent')
  await using two = await startTestGateway(config, { databaseUrl })
  await Promise.all([one.reach('rec', 'connected'), two.reach('rec', 'connected')])
  const send = async (url: string, path: string, init: { body?: object; key?: string } = {}) => {
    const response = await fetch(`${url}/api${path}`, {
      method: init.body ? 'POST' : 'GET',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(init.key && { 'idempotency-key': init.key }),
      },
      ...(init.body && { body: JSON.stringify(init.body) }),
    })
    return { status: response.status, text: await response.text() }
  }

  const given = { body: { arguments: { n: 1 } }, key: 'k' }
  const sent = Array.from({ length: 20 }, (_, n) =>
    send(n % 2 === 0 ? one.url : two.url, '/tools/rec_write_thing/call', given),
  )
  const answers = await Promise.all(sent)
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(answers[0]?.status).toBe(200)
  expect(await readRecord(record)).toHaveLength(1)

  const text = 'abcdefghij'.repeat(500)
  const cut = await send(one.url, '/tools/rec_echo/call', { body: { arguments: { text } } })
  const [path] = /\/results\/[\w-]+/.exec(cut.text) ?? []
  const page = await send(two.url, `${path}?offset=2001&length=9`)
  expect(toFields(JSON.parse(page.text))).toMatchObject({ text: 'bcdefghij', offset: 2001, total: 5000 })
})
