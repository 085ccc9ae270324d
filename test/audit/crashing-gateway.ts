/** A gateway that makes a few calls, anchors, lets go of what is old and stops, unless it is killed on the way. */
import { createGateway } from '../../src/gateway/gateway.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createIds } from '../../src/lib/ids.ts'

const [configFile = '', dataFolder = '', run = '0'] = process.argv.slice(2)
const day = 86_400_000
/** Every run is some days later than the one before, so that retention has something to do. */
const now = () => Date.now() + Number(run) * 3 * day
const clock: Clock = { ...systemClock, now }
const gateway = await createGateway({ configFile, dataFolder, clock, ids: createIds(now), graceMs: 1000 })

await until(() => gateway.servers.list().every(({ state }) => state === 'connected'))
await gateway.audit.confirmClock('user:ada', now())
for (const [index, tool] of ['write_thing', 'read_thing', 'write_thing'].entries()) {
  await gateway.calls.run(
    {
      principal: { kind: 'agent', name: 'tester' },
      surface: 'library',
      selector: { kind: 'all' },
      name: `files_${tool}`,
      arguments: { n: Number(run) * 10 + index },
    },
    { signal: AbortSignal.timeout(10_000) },
  )
}
await until(async () => (await gateway.audit.list({ limit: 1, until: now() - 2 * day })).items.length === 0)
await gateway.close()

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('It did not happen')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
