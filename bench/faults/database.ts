import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { type Gateway, recording, startGateway } from './gateway.ts'
import { type PausingProxy, startPausingProxy } from './pausing-proxy.ts'
import type { Row } from './row.ts'

/** Starts gateways on a new database, behind a proxy that can stop forwarding. */
async function onDatabase(
  count: number,
  servers: object,
  measure: (gateways: readonly Gateway[], proxy: PausingProxy, directUrl: string) => Promise<Row[]>,
): Promise<Row[]> {
  const server = await startPostgresServer()
  const proxy = await startPausingProxy(server.port)
  const url = new URL(server.url())
  url.port = String(proxy.port)
  const gateways: Gateway[] = []
  try {
    while (gateways.length < count) gateways.push(await startGateway(servers, url.href))
    return await measure(gateways, proxy, server.url())
  } finally {
    proxy.resume()
    await Promise.allSettled(gateways.map((gateway) => gateway.close()))
    proxy.close()
    await server.close()
  }
}

export function measureSilentDatabase(): Promise<Row[]> {
  return onDatabase(1, { rec: recording }, async ([gateway], proxy) => {
    if (!gateway) return []
    await gateway.call('rec_write_thing')
    proxy.pause()
    const { status, ms } = await gateway.call('rec_write_thing')
    return [['silent database: time until a write is refused', `${(ms / 1000).toFixed(1)} s (HTTP ${status})`]]
  })
}

const changingMs = 6000

export function measureChanges(): Promise<Row[]> {
  return onDatabase(2, { rec: recording }, async ([here, there]) => {
    if (!here || !there) return []
    const until = performance.now() + changingMs
    let [changes, asked, refused] = [0, 0, 0]
    const lanes = Array.from({ length: 6 }, async () => {
      while (performance.now() < until) {
        const { body } = await here.ask('POST', '/api/tokens', { agent: 'busy' })
        await here.ask('DELETE', `/api/tokens/${body.id}`)
        changes += 2
      }
    })
    while (performance.now() < until) {
      asked++
      if ((await there.call('rec_write_thing')).status !== 200) refused++
      await wait(10)
    }
    await Promise.all(lanes)
    return [
      [`${changes} changes in ${changingMs / 1000} s: calls refused by another gateway`, `${refused} of ${asked}`],
    ]
  })
}

const pauseMs = 8000
/** Long enough for each gateway to look twice for dead instances. */
const afterwardsMs = 12_000

export function measurePause(): Promise<Row[]> {
  return onDatabase(3, { one: recording, two: recording }, async (gateways, proxy, directUrl) => {
    const client = new pg.Client({ connectionString: directUrl })
    await client.connect()
    const { rows } = await client.query<{ pid: number }>('select pid from children')
    await client.end()
    proxy.pause()
    await wait(pauseMs)
    proxy.resume()
    await wait(afterwardsMs)
    const alive = rows.filter(({ pid }) => isRunning(Number(pid)))
    const what = `database pause of ${pauseMs / 1000} s, ${gateways.length} gateways: stdio servers that survive`
    return [[what, `${alive.length} of ${rows.length}`]]
  })
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
