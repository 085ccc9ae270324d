import { join } from 'node:path'
import { expect, it } from 'vitest'
import { adminToken } from '../../../src/identity/identity.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { createIds } from '../../../src/lib/ids.ts'
import { runCli } from '../../cli/support.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { freshDatabase, moveDatabaseClock } from '../../support/postgres.ts'
import { ada, ask, createStage, type Gate, requestApproval } from '../approvals/stage.ts'

const minute = 60_000
const expiry = 5 * minute

const wrongBy = (minutes: number): Clock => ({ ...systemClock, now: () => systemClock.now() + minutes * minute })

/** Three machines on one database: one clock is right, one is slow and one is fast. */
async function startThree(change: (clock: Clock) => Clock = (clock) => clock) {
  const stage = await createStage('PostgreSQL', { config: { limits: { approvalExpiry: expiry } } })
  const move = (milliseconds: number) => moveDatabaseClock(stage.place.databaseUrl ?? '', milliseconds)
  await move(0) // connections made from now on have a clock that can be moved
  const open = (name: string, minutes: number) =>
    stage.open(name, { clock: change(wrongBy(minutes)), ids: createIds() })
  const gates = [await open('right', 0), await open('slow', -3), await open('fast', 3)] as const
  const [right, slow] = gates
  const expiresAt = new Date(Date.now() + expiry).toISOString()
  const { token } = await right.gateway.tokens.create(adminToken, { agent: 'helper', expiresAt })
  const session = await right.gateway.sessions.create(ada, { name: 'nightly', owner: 'mia', expiresAt })
  const grant = { tools: 'files_write_thing', principal: 'agent:helper', budget: 100, expiresAt }
  await right.gateway.grants.add(ada, { ...grant, reason: 'for the night' })
  const { id } = await requestApproval(slow, { tool: 'destroy_thing' })

  const isKnown = ({ gateway }: Gate, text: string) => {
    try {
      return gateway.identity.authenticate(text) !== undefined
    } catch {
      return false
    }
  }
  /** What each machine makes of the token, the session and its token, the grant and the approval. */
  const look = () =>
    Promise.all(
      gates.map(async (gate) => ({
        token: isKnown(gate, token),
        session: (await gate.gateway.sessions.get(ada, 'nightly')).state,
        sessionToken: isKnown(gate, session.token),
        call: (await ask(gate)).kind,
        approval: (await gate.gateway.approvals.get(ada, id)).state,
      })),
    )
  return { move, look }
}

const valid = { token: true, session: 'open', sessionToken: true, call: 'answered', approval: 'waiting' }
const over = { token: false, session: 'expired', sessionToken: false, call: 'waiting', approval: 'expired' }

it('lets tokens, sessions, grants and approvals expire at the same moment on machines whose clocks differ', async () => {
  const { move, look } = await startThree()
  expect(await look()).toEqual([valid, valid, valid])
  await move(expiry + 1000)
  // A gateway refuses calls until it has renewed its lease after the jump, and an approval is closed by the next one that looks.
  await poll(async () => {
    const seen = await look().catch(() => [])
    return seen.length > 0 && seen.every(({ call, approval }) => call === 'waiting' && approval === 'expired')
      ? seen
      : undefined
  }, 20_000)
  expect(await look()).toEqual([over, over, over])
})

it('would notice gateways that go by the clocks of their machines', async () => {
  const { move, look } = await startThree((clock) => ({ ...clock, common: true }))
  await move(expiry + 1000)
  const seen = await poll(() => look().catch(() => undefined), 20_000)
  expect(seen.map(({ token, call }) => ({ token, call }))).toEqual(seen.map(() => ({ token: true, call: 'answered' })))
})

it('refuses to start on a machine whose clock is an hour wrong, and says by how much', async () => {
  const databaseUrl = await freshDatabase()
  const started = startTestGateway({}, { databaseUrl, clock: wrongBy(-61), wait: false })
  await expect(started).rejects.toMatchObject({
    code: 'clock-wrong',
    message: "The clock of this machine is 61 minutes behind the database's clock; the maximum is 10 minutes",
  })
})

it('is not ready while the clock of its machine is too wrong, tells doctor why, and continues when it is right', async () => {
  let minutes = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + minutes * minute }
  await using test = await startTestGateway({}, { databaseUrl: await freshDatabase(), clock })
  const ready = async () => (await fetch(`${test.url}/readyz`)).status
  expect(await ready()).toBe(200)
  minutes = 61
  await poll(async () => (await ready()) === 503 || undefined)
  expect(test.gateway.status().storage).toMatchObject({ healthy: false, problem: { code: 'clock-wrong' } })
  const doctor = await runCli(['doctor', '--data', join(test.folder, 'data')])
  expect(doctor.stdout + doctor.stderr).toContain(
    "The clock of this machine is 61 minutes ahead of the database's clock",
  )
  minutes = 0
  await poll(async () => (await ready()) === 200 || undefined)
})
