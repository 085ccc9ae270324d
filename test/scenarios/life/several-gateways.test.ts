import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { ServerDefinition } from '../../../src/contract/server.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freshDatabase } from '../../support/postgres.ts'

const server = (text: string) => ServerDefinition.parse({ transport: 'http', url: `http://127.0.0.1:1/${text}` })
const withServers = (...names: string[]): ConfigInput => ({
  servers: Object.fromEntries(names.map((name) => [name, server(name)])),
})
const serversOf = ({ gateway }: TestGateway) => Object.keys(gateway.config.current().servers).toSorted()
const principal = { kind: 'user', name: 'admin-token', role: 'administrator' } as const

async function startOn(databaseUrl: string, config: ConfigInput, folder?: string): Promise<TestGateway> {
  return startTestGateway(config, { databaseUrl, wait: false, ...(folder && { folder }) })
}

it('takes over the file at the first start, and gives the same configuration to whoever comes later', async () => {
  const url = await freshDatabase()
  await using first = await startOn(url, withServers('files'))
  await first.gateway.servers.add(principal, { name: 'mail', definition: server('mail') })
  await using second = await startOn(url, withServers('files'))
  expect(serversOf(second)).toEqual(['files', 'mail'])
  expect(await readFile(first.configFile, 'utf8')).not.toContain('mail')
  expect(second.gateway.status().storage).toEqual({ kind: 'postgresql', healthy: true })
})

it('has a change in force on every gateway when it is answered, and in the record once', async () => {
  const url = await freshDatabase()
  await using first = await startOn(url, withServers('files'))
  await using second = await startOn(url, withServers('files'))
  await first.gateway.servers.add(principal, { name: 'mail', definition: server('mail') })
  expect(serversOf(second)).toEqual(['files', 'mail'])
  await second.gateway.servers.remove(principal, 'files')
  expect(serversOf(first)).toEqual(['mail'])
  const { items } = await first.gateway.audit.list({ limit: 20, kind: 'change' })
  expect(items.map(({ subject, body }) => `${subject} ${body.change ?? body.changed}`)).toEqual([
    'server:files removed',
    'server:mail added',
  ])
})

it('loses no change when several gateways change something at the same moment', async () => {
  const url = await freshDatabase()
  await using first = await startOn(url, withServers())
  await using second = await startOn(url, withServers())
  const names = Array.from({ length: 6 }, (_, index) => `server-${index}`)
  await Promise.all(
    names.map((name, index) =>
      (index % 2 === 0 ? first : second).gateway.servers.add(principal, { name, definition: server(name) }),
    ),
  )
  expect([serversOf(first), serversOf(second)]).toEqual([names, names])
})

it('takes over a file that somebody edits while a gateway is running, for all of them', async () => {
  const url = await freshDatabase()
  await using first = await startOn(url, withServers('files'))
  await using second = await startOn(url, withServers('files'))
  await second.writeConfig(withServers('files', 'wiki'))
  await poll(() => serversOf(first).includes('wiki') || undefined)
  await writeFile(first.configFile, '{ "servers": ')
  await poll(() => first.gateway.config.rejected().length > 0 || undefined)
  expect(serversOf(first)).toEqual(['files', 'wiki'])
  expect(second.gateway.config.rejected()).toEqual([])
})

it('takes over a file at a later start only if somebody edited it meanwhile', async () => {
  const url = await freshDatabase()
  await using first = await startOn(url, withServers('files'))
  await first.gateway.servers.add(principal, { name: 'mail', definition: server('mail') })
  await first.stop()
  await using again = await startOn(url, withServers('files'), first.folder)
  expect(serversOf(again)).toEqual(['files', 'mail'])
  await again.stop()
  await using edited = await startOn(url, withServers('wiki'), first.folder)
  expect(serversOf(edited)).toEqual(['wiki'])
})

it('does not go back and forth between the files of two gateways that differ', async () => {
  const url = await freshDatabase()
  await using first = await startOn(url, withServers('files'))
  await using second = await startOn(url, withServers('wiki'))
  await first.stop()
  await using again = await startOn(url, withServers('files'), first.folder)
  expect([serversOf(again), serversOf(second)]).toEqual([['wiki'], ['wiki']])
})

it('has one record, which every gateway can prove', async () => {
  const url = await freshDatabase()
  await using first = await startOn(url, withServers())
  await using second = await startOn(url, withServers())
  await first.gateway.servers.add(principal, { name: 'mail', definition: server('mail') })
  await second.gateway.servers.add(principal, { name: 'wiki', definition: server('wiki') })
  for (const { gateway } of [first, second]) {
    expect(await gateway.audit.verify(AbortSignal.timeout(20_000))).toMatchObject({ clean: true, chains: 2 })
  }
})

it('does not start with another key for the record than the others have', async () => {
  const url = await freshDatabase()
  await using _first = await startOn(url, withServers())
  const environment = { ...process.env, SALLYPORT_KEY: randomBytes(32).toString('base64') }
  const started = startTestGateway(withServers(), { databaseUrl: url, environment, wait: false })
  await expect(started).rejects.toMatchObject({ code: 'audit-key-wrong' })
})
