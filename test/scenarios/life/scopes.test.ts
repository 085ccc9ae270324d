import { expect, it } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { call, namesOf, recordingServer, textOf } from '../governance/support.ts'

async function environmentFor(gateway: TestGateway, as: string, server = 'files'): Promise<Record<string, string>> {
  const { env } = JSON.parse(textOf(await call(gateway, `${server}_environment`, { as })))
  return env
}

it('hides a server that an agent has switched off from that agent alone', async () => {
  const files = recordingServer()
  await using gateway = await startTestGateway({
    servers: { files: files.server },
    agents: { blind: { servers: { files: { enabled: false } } } },
  })
  expect(namesOf(gateway, 'blind')).toEqual([])
  expect(namesOf(gateway, 'other')).toContain('files_echo')
  expect(await call(gateway, 'files_echo', { as: 'blind' })).toMatchObject({ error: { code: 'tool-not-found' } })
  expect(() => namesOf(gateway, 'blind', { kind: 'server', name: 'files' })).toThrow('No server is named files')
  const client = await gateway.connectV1('blind')
  expect((await client.listTools()).tools).toEqual([])
  expect(await files.received()).toEqual([])
  expect(gateway.gateway.servers.list()).toHaveLength(1)
})

it('gives an override with other variables a connection of its own, and shares one where the link is the same', async () => {
  const files = recordingServer()
  await using gateway = await startTestGateway({
    servers: { files: { ...files.server, env: { OWNER: 'everyone', KEPT: 'yes' } } },
    agents: {
      special: { servers: { files: { env: { OWNER: 'special' } } } },
      narrow: { servers: { files: { tools: { include: ['environment'] } } } },
    },
  })
  expect(gateway.gateway.servers.list().map(({ id, scope }) => `${id} ${scope}`)).toEqual([
    'files global',
    'files@agent:special agent:special',
  ])
  expect(await environmentFor(gateway, 'anybody')).toMatchObject({ OWNER: 'everyone', KEPT: 'yes' })
  expect(await environmentFor(gateway, 'special')).toMatchObject({ OWNER: 'special', KEPT: 'yes' })
  expect(await environmentFor(gateway, 'narrow')).toMatchObject({ OWNER: 'everyone' })
  expect(namesOf(gateway, 'narrow')).toEqual(['files_environment'])
  const [first, second, third] = await files.lines()
  expect(first?.pid).not.toBe(second?.pid)
  expect(third?.pid).toBe(first?.pid)
})

it('hands an override that changes the program none of the variables of the first', async () => {
  const files = recordingServer()
  const { transport, command, args } = files.server
  await using gateway = await startTestGateway({
    servers: { files: { transport, command: '/usr/bin/env', args: [command, ...args], env: { TOKEN: 'secret' } } },
    agents: { special: { servers: { files: { transport, command, args } } } },
  })
  expect(await environmentFor(gateway, 'anybody')).toHaveProperty('TOKEN', 'secret')
  expect(await environmentFor(gateway, 'special')).not.toHaveProperty('TOKEN')
})

it('offers servers of a project and of an agent to those alone', async () => {
  const [shop, own] = [recordingServer(), recordingServer()]
  await using gateway = await startTestGateway({
    projects: { shop: { servers: { shop: shop.server }, rules: [{ tools: 'shop_write_*', action: 'allow' }] } },
    agents: { seller: { project: 'shop', servers: { own: own.server } }, helper: { project: 'shop' } },
  })
  const serversOf = (as: string) => [...new Set(namesOf(gateway, as).map((name) => name.split('_')[0]))]
  expect(serversOf('seller')).toEqual(['own', 'shop'])
  expect(serversOf('helper')).toEqual(['shop'])
  expect(serversOf('stranger')).toEqual([])
  expect(await call(gateway, 'shop_write_thing', { as: 'helper' })).toMatchObject({ kind: 'answered' })
  expect(await call(gateway, 'shop_write_thing', { as: 'stranger' })).toMatchObject({
    error: { code: 'tool-not-found' },
  })
  expect(await shop.received()).toEqual(['write_thing'])
})

it('fills in only variables that are listed, and never its own', async () => {
  const files = recordingServer()
  const env = { GIVEN: '${LISTED}', FALLEN: '${ABSENT:-back}', PLAIN: '$${LISTED}' }
  await using gateway = await startTestGateway(
    {
      environment: ['LISTED', 'ABSENT'],
      servers: {
        files: { ...files.server, env },
        unlisted: { ...files.server, env: { A: '${HIDDEN}' } },
        unset: { ...files.server, env: { A: '${ABSENT}' } },
        own: { ...files.server, env: { A: '${SALLYPORT_KEY}' } },
      },
    },
    { environment: { LISTED: 'value', HIDDEN: 'no', SALLYPORT_KEY: 'ab'.repeat(32) } },
  )
  await gateway.reach('files', 'connected')
  const seen = await environmentFor(gateway, 'anybody')
  expect(seen).toMatchObject({ GIVEN: 'value', FALLEN: 'back', PLAIN: '${LISTED}' })
  expect(Object.keys(seen)).not.toContain('HIDDEN')
  expect(Object.keys(seen)).not.toContain('SALLYPORT_KEY')
  for (const [name, variable] of [
    ['unlisted', 'HIDDEN'],
    ['unset', 'ABSENT'],
    ['own', 'SALLYPORT_KEY'],
  ] as const) {
    const { error } = await gateway.reach(name, 'failed')
    expect(error).toMatchObject({ code: 'variable-missing', message: expect.stringContaining(variable) })
  }
  expect(gateway.gateway.status().healthy).toBe(false)
})
