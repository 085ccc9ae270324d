import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Pin } from '../../../src/contract/pin.ts'
import { type HttpFixture, startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { administrator, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Name, people, type Rest, serveRest } from './support.ts'

let fixture: HttpFixture
let gateway: TestGateway
let rest: Rest

beforeAll(async () => {
  fixture = await startHttpFixture('recording', ['--http'])
  const http = { transport: 'http' as const, url: fixture.url }
  gateway = await startTestGateway({
    egress: { allow: ['127.0.0.1'] },
    members: { hosts: ['127.0.0.1'] },
    servers: { files: stdioFixture('recording') },
    projects: { shop: { owners: ['olga'], servers: { stock: http } } },
    users: { anna: { servers: { mine: http } } },
  })
  await poll(() => (['files', 'stock', 'mine'].every((server) => pinsOf(server).length > 0) ? true : undefined))
  rest = await serveRest(gateway)
})

afterAll(async () => {
  await rest[Symbol.asyncDispose]()
  await gateway.close()
  await fixture.stop()
})

function pinsOf(server: string): Pin[] {
  return gateway.gateway.pins.list(administrator, { server })
}

function pinOf(server: string): { id: string; hash: string } {
  const pin = pinsOf(server).find(({ name }) => name === 'read_thing')
  if (!pin?.live) throw new Error(`${server} has no such pin`)
  return { id: pin.id, hash: pin.live.hash }
}

/** Look at the list and at one, accept it, accept it among several, block it; for the server of all, of the shop, of Anna. */
const table: readonly (readonly [Name, string, string, string])[] = [
  ['root', '+ 200 200 200 200', '+ 200 200 200 200', '+ 200 200 200 200'],
  ['tokenFile', '+ 200 200 200 200', '+ 200 200 200 200', '+ 200 200 200 200'],
  ['olga', '- 404 404 404 404', '+ 200 200 200 200', '- 404 404 404 404'],
  ['anna', '- 404 404 404 404', '- 404 404 404 404', '+ 200 200 200 200'],
  ['ben', '- 404 404 404 404', '- 404 404 404 404', '- 404 404 404 404'],
  ['otto', '+ 200 403 403 403', '+ 200 403 403 403', '+ 200 403 403 403'],
  ['agent', '! 403 403 403 403', '! 403 403 403 403', '! 403 403 403 403'],
]

it.each(table)('%s looks at and decides what is theirs', async (who, ...expected) => {
  const answers = ['files', 'stock', 'mine'].map(async (server) => {
    const { id, hash } = pinOf(server)
    const list = await rest.ask(who, 'GET', `/pins?server=${server}`)
    const seen = Array.isArray(list.body.items) && list.body.items.length > 0 ? '+' : '-'
    const one = await rest.ask(who, 'GET', `/pins/${id}`)
    const block = await rest.ask(who, 'POST', `/pins/${id}/block`, { hash })
    const accept = await rest.ask(who, 'POST', `/pins/${id}/accept`, { hash })
    const many = await rest.ask(who, 'POST', '/pins/accept', { accept: [{ id, hash }] })
    const codes = [one, accept, many, block].map(({ status }) => status)
    return [list.status === 403 ? '!' : seen, ...codes].join(' ')
  })
  expect(await Promise.all(answers)).toEqual(expected)
})

it('takes nothing of several where one is not theirs', async () => {
  const [own, other] = [pinOf('mine'), pinOf('files')]
  await gateway.gateway.pins.block(people.root, own)
  const answer = await rest.ask('anna', 'POST', '/pins/accept', { accept: [own, other] })
  expect(answer).toMatchObject({ status: 404, body: { error: { code: 'pin-not-found' } } })
  expect(pinsOf('mine').find(({ id }) => id === own.id)?.state).toBe('blocked')
  await gateway.gateway.pins.accept(people.anna, [own])
})

it('lets no member loosen what the operator wants of all', async () => {
  await using strict = await startTestGateway({
    pinning: 'strict',
    egress: { allow: ['127.0.0.1'] },
    members: { hosts: ['127.0.0.1'] },
    users: { anna: { servers: { mine: { transport: 'http', url: fixture.url, pinning: 'baseline' } } } },
  })
  await poll(() => (strict.gateway.pins.list(administrator, { server: 'mine' }).length > 0 ? true : undefined))
  expect(strict.gateway.catalog.listTools(people.anna, { kind: 'all' })).toEqual([])
  expect(strict.gateway.pins.list(people.anna, { state: ['new'] }).length).toBeGreaterThan(5)
})
