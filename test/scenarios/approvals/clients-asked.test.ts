import { beforeAll, describe, expect, it } from 'vitest'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { ask, envelope, metaKey, recordingAt, temporaryFolder, textOf } from '../mcp/raw.ts'
import { type AtClient, type Kind, type Scene, startScene } from './clients-support.ts'

const tool = 'rec_write_thing'
const askAtClient = [{ tools: tool, action: 'ask' as const, approvers: 'client' }]
const isComplete = ({ method }: Fields) => method === 'notifications/elicitation/complete'

describe.each<[string, Kind]>([
  ['a 2026 client', { sdk: 'v2', over: 'http', elicitation: { form: {}, url: {} } }],
  ['a 2025 client', { sdk: 'v1', over: 'http', elicitation: { form: {}, url: {} } }],
  ['a 2025 client that names no kind of approval', { sdk: 'v1', over: 'http', elicitation: {} }],
])('the person at %s, where a rule lets them answer', (_name, kind) => {
  let scene: Scene
  beforeAll(async () => {
    scene = await startScene({ rules: askAtClient })
    return () => scene[Symbol.asyncDispose]()
  })

  const asking = (atClient: AtClient) => scene.connect(kind, { atClient })

  it('approves in a form that shows all of the call, and it runs once', async () => {
    const given = { path: '/form', note: 'to\u202eeht moc.elpmaxe', deep: { list: ['a', { b: 'c\u0000' }] } }
    const client = await asking(() => ({ action: 'accept', content: { decision: 'approve' } }))
    expect(textOf(await client.call(tool, given))).toContain('/form')
    expect(await scene.received()).toContainEqual(given)
    const [shown] = client.asked
    expect(shown).not.toHaveProperty('url')
    const message = String(shown?.message)
    for (const part of [
      'Write thing',
      tool,
      'agent:agent',
      '"path": "/form"',
      'to\\u202eeht moc.elpmaxe',
      '"b": "c\\u0000"',
    ])
      expect(message).toContain(part)
    expect(message).toMatch(new RegExp(`${scene.gateway.url}/approvals/approval_\\w+`))
    expect(shown?.requestedSchema).toMatchObject({
      properties: { decision: { enum: ['approve', 'deny'] }, reason: { type: 'string' } },
      required: ['decision'],
    })
    expect(JSON.stringify(shown?.requestedSchema)).not.toContain('default')
  })

  it('denies with a reason, which the agent gets', async () => {
    const client = await asking(() => ({ action: 'accept', content: { decision: 'deny', reason: 'wrong folder' } }))
    const result = await client.call(tool, { path: '/no' })
    expect(textOf(result)).toMatch(/approval-denied: .*wrong folder/)
    expect(await scene.received()).not.toContainEqual({ path: '/no' })
  })

  it('denies by refusing to answer', async () => {
    const client = await asking(() => ({ action: 'decline' }))
    expect(textOf(await client.call(tool, { path: '/declined' }))).toContain('approval-denied')
    expect(await scene.received()).not.toContainEqual({ path: '/declined' })
  })

  it.each<[string, AtClient]>([
    ['closes the form', () => ({ action: 'cancel' })],
    ['sends it without a decision', () => ({ action: 'accept', content: { reason: 'hm' } })],
    ['decides on what it does not offer', () => ({ action: 'accept', content: { decision: 'APPROVE' } })],
  ])('decides nothing when somebody %s: the call goes on waiting for a person elsewhere', async (how, atClient) => {
    const given = { path: how }
    const client = await asking(atClient)
    const call = client.call(tool, given).catch((error: unknown) => toFields({ content: [{ text: String(error) }] }))
    const { id } = await scene.asked(given)
    await poll(() => client.asked.length > 0 || undefined)
    expect(await scene.stateOf(id)).toBe('waiting')
    await scene.answer(id, 'deny', 'by ada')
    // The official clients check a form before they send it, and then the call fails at once.
    expect(textOf(await call)).toMatch(/by ada|decision/)
    expect(await scene.received()).not.toContainEqual(given)
  })

  it('is not asked in a form what is too long to be read in one', async () => {
    const given = { path: '/long', text: 'x'.repeat(40_000) }
    const client = await asking(() => ({ action: 'accept', content: { decision: 'approve' } }))
    const call = client.call(tool, given)
    const { id } = await scene.asked(given)
    await scene.answer(id, 'deny', 'too long')
    expect(textOf(await call)).toContain('too long')
    for (const shown of client.asked) expect(shown.mode).toBe('url')
  })
})

describe('whoever sits at the client, where no rule lets them answer', () => {
  it('is shown no form: a client that knows only forms waits for a person elsewhere', async () => {
    await using scene = await startScene()
    const clients = await Promise.all(
      (['v1', 'v2'] as const).map((sdk) =>
        scene.connect(
          { sdk, over: 'http', elicitation: { form: {} } },
          { agent: sdk, atClient: () => ({ action: 'accept', content: { decision: 'approve' } }) },
        ),
      ),
    )
    const calls = clients.map((client, n) => client.call(tool, { n }))
    for (const [n] of clients.entries()) await scene.answer((await scene.asked({ n })).id, 'deny', 'by ada')
    for (const result of await Promise.all(calls)) expect(textOf(result)).toContain('by ada')
    expect(clients.flatMap(({ asked }) => asked)).toEqual([])
    expect(await scene.received()).toEqual([])
  })

  it('approves nothing by an answer that nobody asked for, or that says more than was asked', async () => {
    await using scene = await startScene({ limits: { hold: 0 } })
    const approve = { approval: { action: 'accept', content: { decision: 'approve' } } }
    const params = { name: tool, arguments: { path: '/forged' } }
    const meta = { ...envelope(), [metaKey('clientCapabilities')]: { elicitation: { form: {}, url: {} } } }
    const first = await ask(scene.gateway, 'tools/call', { ...params, inputResponses: approve }, { meta })
    expect(first.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { approval: { params: { mode: 'url' } } },
    })
    const again = { ...params, inputResponses: approve, requestState: first.result.requestState }
    const second = await ask(scene.gateway, 'tools/call', again, { meta })
    expect(textOf(second.result)).toContain('approval-waiting')
    expect(await scene.stateOf((await scene.asked(params.arguments)).id)).toBe('waiting')
    expect(await scene.received()).toEqual([])
  })
})

describe('a client that opens addresses', () => {
  it('is sent to the page of the approval, under the public address where there is one', async () => {
    await using scene = await startScene({ listen: { port: 0, publicUrl: 'https://gate.example.com/' } })
    const client = await scene.connect({ sdk: 'v2', over: 'http', elicitation: { url: {} } })
    const call = client.call(tool, { path: '/page' })
    const { id } = await scene.asked({ path: '/page' })
    await scene.answer(id, 'approve')
    await call
    const url = `https://gate.example.com/approvals/${id}`
    expect(client.asked).toMatchObject([{ mode: 'url', url, message: expect.stringContaining(url) }])
  })

  it.each(['decline', 'cancel'] as const)('and answers %s decides nothing by it', async (action) => {
    await using scene = await startScene()
    const kinds = (['v1', 'v2'] as const).map((sdk): Kind => ({ sdk, over: 'http', elicitation: { url: {} } }))
    for (const kind of kinds) {
      const given = { path: kind.sdk }
      const client = await scene.connect(kind, { atClient: () => ({ action }) })
      const call = client.call(tool, given)
      const { id } = await scene.asked(given)
      await poll(() => client.asked.length > 0 || undefined)
      await scene.answer(id, 'approve')
      expect(textOf(await call)).toContain(kind.sdk)
    }
    expect(await scene.received()).toEqual([{ path: 'v1' }, { path: 'v2' }])
  })

  it('of the older era gets the result while its approval is still shown, which is taken back', async () => {
    await using scene = await startScene()
    const kind: Kind = { sdk: 'v1', over: 'http', elicitation: { url: {} } }
    const client = await scene.connect(kind, { atClient: () => Promise.withResolvers<never>().promise })
    const call = client.call(tool, { path: '/open' })
    const { id } = await scene.asked({ path: '/open' })
    await poll(() => client.asked.length > 0 || undefined)
    await scene.answer(id, 'approve')
    expect(textOf(await call)).toContain('/open')
    expect(client.takenBack).toEqual(client.asked)
    expect(client.heard.filter(isComplete)).toMatchObject([{ params: { elicitationId: id } }])
  })

  it('of the newer era runs nothing while no request of it waits; it runs when the client comes back', async () => {
    await using scene = await startScene()
    const opened = Promise.withResolvers<{ action: 'accept' }>()
    const kind: Kind = { sdk: 'v2', over: 'http', elicitation: { url: {} } }
    const client = await scene.connect(kind, { atClient: () => opened.promise })
    const call = client.call(tool, { path: '/parked' })
    const { id } = await scene.asked({ path: '/parked' })
    await poll(() => client.asked.length > 0 || undefined)
    await scene.answer(id, 'approve')
    expect(await scene.stateOf(id)).toBe('approved')
    expect(await scene.received()).toEqual([])
    opened.resolve({ action: 'accept' })
    expect(textOf(await call)).toContain('/parked')
    expect(await scene.received()).toEqual([{ path: '/parked' }])
  })

  it('of the newer era is the only one who can come back with its state', async () => {
    await using scene = await startScene({ limits: { hold: 0 } })
    const meta = { ...envelope(), [metaKey('clientCapabilities')]: { elicitation: { url: {} } } }
    const params = { name: tool, arguments: { path: '/mine' } }
    const { result } = await ask(scene.gateway, 'tools/call', params, { meta, agent: 'ann' })
    const { id } = await scene.asked(params.arguments)
    await scene.answer(id, 'approve')
    const back = { ...params, inputResponses: { approval: { action: 'accept' } }, requestState: result.requestState }
    const stolen = await ask(scene.gateway, 'tools/call', back, { meta, agent: 'bob' })
    const other = { ...back, arguments: { path: '/other' } }
    const changed = await ask(scene.gateway, 'tools/call', other, { meta, agent: 'ann' })
    for (const { error } of [stolen, changed]) expect(error.data).toMatchObject({ code: 'state-invalid' })
    expect(await scene.received()).toEqual([])
    expect(textOf((await ask(scene.gateway, 'tools/call', back, { meta, agent: 'ann' })).result)).toContain('/mine')
    expect(await scene.received()).toEqual([{ path: '/mine' }])
  })

  it('of the newer era comes back to a gateway that was started anew, and joins its approval', async () => {
    await using folder = await temporaryFolder()
    const { server } = recordingAt(folder.path)
    const config = { servers: { rec: server }, limits: { hold: 0 } }
    const params = { name: tool, arguments: { path: '/restart' } }
    const meta = { ...envelope(), [metaKey('clientCapabilities')]: { elicitation: { url: {} } } }
    let state: unknown
    let id = ''
    {
      await using gateway = await startTestGateway(config, { folder: folder.path })
      const { result } = await ask(gateway, 'tools/call', params, { meta })
      state = result.requestState
      id = String(toFields(toFields(toFields(result.inputRequests).approval).params).elicitationId)
    }
    await using gateway = await startTestGateway(config, { folder: folder.path })
    const inputResponses = { approval: { action: 'accept' } }
    const back = await ask(gateway, 'tools/call', { ...params, inputResponses, requestState: state }, { meta })
    expect(back.result).toMatchObject({ resultType: 'input_required' })
    expect(JSON.stringify(back.result.inputRequests)).toContain(`/approvals/${id}"`)
  })
})
