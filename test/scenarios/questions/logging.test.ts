import { describe, expect, it } from 'vitest'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { endedCalls, type Live, liveRequest, openClient, request, startAsking } from './support.ts'

const all = ['debug', 'info', 'warning', 'error'].map((level) => ({ log: `at ${level}`, level }))

function logged(messages: readonly Fields[]): unknown[] {
  return messages.filter(({ method }) => method === 'notifications/message').map(({ params }) => toFields(params).level)
}

async function levelsOf(talk: Live): Promise<unknown[]> {
  await talk.result()
  return logged(talk.messages())
}

describe('what a server logs during a call', () => {
  it('reaches a session from its own level on, and another one from its own', async () => {
    await using scene = await startAsking()
    const [chatty, grave, usual] = await Promise.all(['a', 'b', 'c'].map((agent) => openClient(scene.gateway, agent)))
    if (!chatty || !grave || !usual) throw new Error('No session')
    expect(await levelsOf(await usual.script(all))).toEqual(['info', 'warning', 'error'])
    await grave.request('logging/setLevel', { level: 'error' })
    expect(await levelsOf(await grave.script(all))).toEqual(['error'])
    expect(await levelsOf(await usual.script(all))).toEqual(['info', 'warning', 'error'])
    await chatty.request('logging/setLevel', { level: 'debug' })
    expect(await levelsOf(await chatty.script(all))).toEqual(['debug', 'info', 'warning', 'error'])
    expect(await levelsOf(await grave.script(all))).toEqual(['error'])
    expect(await levelsOf(await usual.script(all))).toEqual(['info', 'warning', 'error'])
    await chatty.request('logging/setLevel', { level: 'emergency' })
    expect(await levelsOf(await chatty.script(all))).toEqual([])
  })

  it('reaches a stateless caller that names a level, with this request, and no other', async () => {
    await using scene = await startAsking()
    const levels = async (logLevel?: string) => {
      const options = logLevel === undefined ? {} : { logLevel }
      return levelsOf(await liveRequest(scene.gateway, { steps: all }, options))
    }
    expect(await levels('debug')).toEqual(['debug', 'info', 'warning', 'error'])
    expect(await levels()).toEqual([])
    expect(await levels('error')).toEqual(['error'])
    expect(await levels('nonsense')).toEqual([])
  })

  it('stands among the server’s own lines, cut to a bearable length', async () => {
    await using scene = await startAsking()
    await request(scene.gateway, { steps: [{ log: `long ${'x'.repeat(100_000)}`, level: 'error' }] })
    await endedCalls(scene.gateway, 1)
    const line = scene.gateway.gateway.servers.logs(undefined, 'asking').lines.find((each) => each.includes('long'))
    expect(line?.startsWith('[error] long')).toBe(true)
    expect(line?.length).toBeLessThan(5000)
  })

  it('is refused a level that there is not', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    expect((await client.request('logging/setLevel', { level: 'loud' })).error).toMatchObject({ code: -32602 })
  })
})
