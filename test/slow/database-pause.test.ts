import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { recording, serveWith, until } from '../cli/support.ts'
import { isGone } from '../scenarios/life/support.ts'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { freshDatabase, runOn } from '../support/postgres.ts'

const key = Buffer.alloc(32, 9).toString('base64')
const config = { servers: { one: recording(), two: recording() } }

it('ends no stdio server of another gateway on this host after the database was silent for 8 seconds', async () => {
  const databaseUrl = await freshDatabase()
  const proxy = await startCuttingProxy(Number(new URL(databaseUrl).port))
  const { databaseUrl: throughProxy } = proxy.before({ databaseUrl })
  const env = { SALLYPORT_DATABASE_URL: throughProxy, SALLYPORT_KEY: key }
  await using first = await serveWith(env, config)
  await using second = await serveWith(env, config)
  await using third = await serveWith(env, config)
  const gateways = [first, second, third]
  const isReady = async () => {
    const answers = await Promise.all(gateways.map(({ fetch }) => fetch('/readyz')))
    return answers.every(({ ok }) => ok) || undefined
  }
  const pids = await until(async () => {
    const rows = await runOn(databaseUrl, 'select pid from children order by pid')
    return rows.length === 6 ? rows.map(({ pid }) => Number(pid)) : undefined
  })

  proxy.pause()
  await wait(8000)
  proxy.resume()
  await until(isReady)
  await wait(11_000) // each gateway has looked for dead ones twice

  expect(await Promise.all(pids.map(isGone))).toEqual(pids.map(() => false))
  expect(await runOn(databaseUrl, 'select pid from children order by pid')).toEqual(pids.map((pid) => ({ pid })))
}, 120_000)
