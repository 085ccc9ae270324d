import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readRecord, stdioFixture } from '../fixtures/fixtures.ts'
import { open, type Reply, send } from '../scenarios/mcp/raw.ts'
import { poll, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { addPerson, firstAdministrator, sendJson, signIn, type TestPerson } from '../support/people.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const record = join(folder, 'record.jsonl')
let gateway: TestGateway
let ada: TestPerson
let kim: TestPerson
let count = 0

beforeAll(async () => {
  gateway = await startTestGateway({ servers: { files: stdioFixture('recording', ['--record', record]) } })
  ada = await firstAdministrator(gateway)
  kim = await addPerson(gateway, ada, 'kim', 'member')
  await gateway.reach('files', 'connected')
  return async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  }
})

async function call(agent: string, given: object, headers: Record<string, string> = {}): Promise<Reply> {
  const authorization = `Bearer ${await gateway.token(agent)}`
  return sendJson(
    gateway,
    'POST',
    '/api/tools/files_write_thing/call',
    { arguments: given },
    { authorization, ...headers },
  )
}

/** Arguments that no other test has. */
const fresh = () => ({ number: ++count })

async function ask(agent = 'reviewer', given: object = fresh()): Promise<{ id: string; hash: string; call: string }> {
  const { status, message } = await call(agent, given)
  expect(status).toBe(202)
  return Object(message.approval)
}

const answer = (person: TestPerson, id: string, body: object) =>
  person.request('POST', `/api/approvals/${id}/answer`, body)
const receivedWith = async (number: unknown) =>
  (await readRecord(record)).filter((line) => line.arguments?.number === number)

describe('a call over REST that must ask', () => {
  it('answers 202 with the call and the approval, and runs once when it is repeated after the approval', async () => {
    const given = fresh()
    const asked = await call('reviewer', given)
    expect([asked.status, asked.message]).toMatchObject([
      202,
      { call: { state: 'waiting' }, approval: { state: 'waiting', tool: 'files_write_thing', arguments: given } },
    ])
    expect(asked.message.approval).not.toHaveProperty('definition')
    const { id, call: callId } = Object(asked.message.approval)
    expect((await call('reviewer', given)).message).toMatchObject({ approval: { id } })
    expect(await receivedWith(given.number)).toEqual([])

    expect((await answer(ada, id, { verdict: 'approve' })).message).toMatchObject({ id, state: 'approved' })
    expect(await receivedWith(given.number)).toEqual([])
    const done = await call('reviewer', given)
    expect([done.status, done.message]).toMatchObject([200, { call: { id: callId, state: 'ok' }, result: {} }])
    expect(await receivedWith(given.number)).toHaveLength(1)
    expect((await ada.request('GET', `/api/approvals/${id}`)).message).toMatchObject({
      state: 'used',
      answers: [{ by: 'ada', verdict: 'approve' }],
      recentCalls: expect.any(Array),
    })
  })

  it('answers 403 with the reason of a denial', async () => {
    const given = fresh()
    const { id } = await ask('reviewer', given)
    await answer(ada, id, { verdict: 'deny', reason: 'Not on a Friday' })
    const refused = await call('reviewer', given)
    expect([refused.status, refused.error.code]).toEqual([403, 'approval-denied'])
    expect(refused.error.message).toContain('Not on a Friday')
    expect(await receivedWith(given.number)).toEqual([])
  })

  it('is described with both of its answers', async () => {
    const { message } = await ada.request('GET', '/api/openapi.json')
    const { responses } = Object(message).paths['/tools/{name}/call'].post
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['200', '202', 'default']))
  })
})

describe('an answer over REST', () => {
  it('counts once, and later ones hear how it stands', async () => {
    const { id } = await ask()
    expect((await answer(ada, id, { verdict: 'deny' })).status).toBe(200)
    const late = await answer(ada, id, { verdict: 'approve' })
    expect([late.status, late.error.code, late.error.message]).toEqual([
      409,
      'approval-answered',
      'The approval was denied by ada',
    ])
  })

  it('is for what was looked at', async () => {
    const { id, hash } = await ask()
    const other = await answer(ada, id, { verdict: 'approve', hash: 'another' })
    expect([other.status, other.error.code]).toEqual([409, 'approval-changed'])
    expect((await answer(ada, id, { verdict: 'approve', hash })).status).toBe(200)
  })

  it('comes from a person: neither an agent nor the token file gives one', async () => {
    const { id } = await ask()
    const token = `Bearer ${await gateway.token('reviewer')}`
    const body = { verdict: 'approve' }
    const byAgent = await sendJson(gateway, 'POST', `/api/approvals/${id}/answer`, body, { authorization: token })
    expect([byAgent.status, byAgent.error.code]).toEqual([403, 'forbidden'])
    const file = (await readFile(join(gateway.folder, 'data', 'admin-token'), 'utf8')).trim()
    const byFile = await sendJson(gateway, 'POST', `/api/approvals/${id}/answer`, body, {
      authorization: `Bearer ${file}`,
    })
    expect([byFile.status, byFile.error.code]).toEqual([403, 'person-needed'])
    expect(await stateOf(id)).toBe('waiting')
  })

  it('is taken from no other site, from no form, and by no reading', async () => {
    const { id } = await ask()
    const path = `/api/approvals/${id}/answer`
    const body = JSON.stringify({ verdict: 'approve' })
    const json = { 'content-type': 'application/json' }
    const tries: [string, string, Record<string, string>, number][] = [
      ['another site', 'POST', { ...json, origin: 'https://evil.example' }, 403],
      ['another site that says no origin', 'POST', { ...json, 'sec-fetch-site': 'cross-site' }, 403],
      ['a neighbour', 'POST', { ...json, 'sec-fetch-site': 'same-site' }, 403],
      ['a form', 'POST', { 'content-type': 'application/x-www-form-urlencoded' }, 403],
      ['plain text', 'POST', { 'content-type': 'text/plain' }, 403],
      ['plain text from our own page', 'POST', { 'content-type': 'text/plain', origin: gateway.url }, 400],
      ['reading', 'GET', {}, 404],
    ]
    for (const [what, method, headers, status] of tries) {
      const sent = { method, path, headers: { cookie: ada.cookie, ...headers }, ...(method === 'POST' && { body }) }
      expect([what, (await send(gateway.url, sent)).status]).toEqual([what, status])
    }
    const inAddress = `${path}?verdict=approve`
    expect((await ada.request('GET', inAddress)).status).toBe(404)
    expect(await stateOf(id)).toBe('waiting')
  })

  it('tells a user who may not answer why not, before any answer', async () => {
    await kim.request('POST', '/api/agents', { name: 'kims' })
    const { id } = await ask('kims')
    expect((await kim.request('GET', `/api/approvals/${id}`)).message).not.toHaveProperty('notAllowed')
    const auditor = await addPerson(gateway, ada, 'otto', 'auditor')
    expect((await auditor.request('GET', `/api/approvals/${id}`)).message).toMatchObject({
      notAllowed: 'auditors cannot answer approvals',
    })
  })
})

describe('approvals and grants of others', () => {
  it('are not there for members and agents', async () => {
    const { id } = await ask()
    const found = await kim.request('GET', `/api/approvals/${id}`)
    expect([found.status, found.error.code]).toEqual([404, 'approval-not-found'])
    const listed = [(await kim.request('GET', '/api/approvals')).message.items].flat()
    expect(listed.map((each) => Object(each).principal).filter((principal) => principal === 'agent:reviewer')).toEqual(
      [],
    )
    expect((await answer(kim, id, { verdict: 'approve' })).status).toBe(404)
    expect(await stateOf(id)).toBe('waiting')
  })

  it('let a grant be given with an answer, listed with its use, and taken back', async () => {
    const given = fresh()
    const { id } = await ask('granted', given)
    const grant = { covers: 'tool', budget: 2, minutes: 5 }
    const { message } = await answer(ada, id, { verdict: 'approve', grant })
    const grantId = String(message.grant)
    expect((await call('granted', given)).status).toBe(200)
    expect((await call('granted', fresh())).status).toBe(200)
    const { items } = (await ada.request('GET', '/api/grants?principal=agent:granted')).message
    expect(items).toMatchObject([{ id: grantId, tools: 'files_write_thing', budget: 2, used: 1, givenBy: 'ada' }])
    expect((await ada.request('DELETE', `/api/grants/${grantId}`)).message).toMatchObject({ revokedBy: 'user:ada' })
    expect((await call('granted', fresh())).status).toBe(202)
  })
})

type Heard = { readonly id: string; readonly name: string; readonly data: Record<string, unknown> }

/** A stream of events with what has come so far. */
function listen(headers: Record<string, string>, names?: string) {
  const request = open(gateway.url, { method: 'GET', path: `/api/events${names ? `?names=${names}` : ''}`, headers })
  const state = { text: '', ended: false, status: 0 }
  request.on('response', (response) => {
    state.status = response.statusCode ?? 0
    response.on('data', (chunk: Buffer) => {
      state.text += chunk.toString('utf8')
    })
    response.on('close', () => {
      state.ended = true
    })
  })
  request.on('error', () => undefined)
  request.end()
  const heard = () =>
    state.text
      .split('\n\n')
      .slice(0, -1)
      .flatMap((block): Heard[] => {
        const [, id = '', name = '', data = ''] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block) ?? []
        return id === '' ? [] : [{ id, name, data: JSON.parse(data) }]
      })
  return {
    heard,
    text: () => state.text,
    opened: () => poll(() => (state.status === 0 || state.text === '' ? undefined : state.status)),
    ended: () => poll(() => state.ended || undefined),
    hear: (name: string, about: string) =>
      poll(() => heard().find((each) => each.name === name && JSON.stringify(each.data).includes(about))),
    [Symbol.dispose]: () => void request.destroy(),
  }
}

describe('the stream of events', () => {
  it('tells of approvals and answers as they come, and of what was missed', async () => {
    using first = listen({ cookie: ada.cookie }, 'approval-requested,approval-answered')
    expect(await first.opened()).toBe(200)
    const one = await ask()
    const { id: lastId } = await first.hear('approval-requested', one.id)
    first[Symbol.dispose]()
    const two = await ask()
    await answer(ada, two.id, { verdict: 'deny' })
    using second = listen({ cookie: ada.cookie, 'last-event-id': lastId }, 'approval-requested,approval-answered')
    await second.hear('approval-answered', two.id)
    expect(second.heard().map(({ name }) => name)).toEqual(['approval-requested', 'approval-answered'])
    expect(second.text()).not.toContain(one.id)
  })

  it('says that everything has to be read again where it cannot tell what was missed', async () => {
    using stream = listen({ cookie: ada.cookie, 'last-event-id': 'somebody-else-12' })
    await poll(() => stream.text().includes('event: reset') || undefined)
  })

  it('tells everybody only what is their business', async () => {
    const token = { authorization: `Bearer ${await gateway.token('reviewer')}` }
    using member = listen({ cookie: kim.cookie })
    using agent = listen(token)
    using administrator = listen({ cookie: ada.cookie })
    await Promise.all([member.opened(), agent.opened(), administrator.opened()])
    const { id } = await ask('reviewer')
    const foreign = await ask('stranger')
    const kims = await ask('kims')
    await administrator.hear('approval-requested', kims.id)
    await member.hear('approval-requested', kims.id)
    await agent.hear('approval-requested', id)
    await administrator.hear('call-waiting', foreign.call)
    expect(member.text()).not.toContain(id)
    expect(member.text()).not.toContain(foreign.call)
    expect(agent.text()).not.toContain(foreign.id)
    expect(agent.text()).not.toContain(kims.call)
  })

  it('ends when the sign-in behind it ends', async () => {
    const person = await signIn(gateway, 'ada')
    using stream = listen({ cookie: person.cookie })
    expect(await stream.opened()).toBe(200)
    await person.request('POST', '/api/sign-out')
    await stream.ended()
  })

  it('is bounded: one that opens too many is told to wait, and others are not kept out', async () => {
    const token = { authorization: `Bearer ${await gateway.token('greedy')}` }
    const streams = Array.from({ length: 50 }, () => listen(token))
    await Promise.all(streams.map((stream) => stream.opened()))
    const refused = await send(gateway.url, { method: 'GET', path: '/api/events', headers: token })
    expect([refused.status, refused.error.code, refused.headers['retry-after']]).toEqual([429, 'limit-exceeded', '5'])
    using other = listen({ cookie: ada.cookie })
    expect(await other.opened()).toBe(200)
    for (const stream of streams) stream[Symbol.dispose]()
    using again = await poll(async () => {
      const stream = listen(token)
      if ((await stream.opened()) === 200) return stream
      stream[Symbol.dispose]()
      return undefined
    })
    expect(again.text()).toContain(': sallyport')
  })

  it('knows the names of events, and no others', async () => {
    const reply = await ada.request('GET', '/api/events?names=approval-requested,nothing')
    expect([reply.status, reply.error.code]).toEqual([400, 'request-invalid'])
  })
})

async function stateOf(id: string): Promise<unknown> {
  return (await ada.request('GET', `/api/approvals/${id}`)).message.state
}
