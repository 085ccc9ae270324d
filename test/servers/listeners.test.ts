import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { onAbort } from '../../src/lib/signals.ts'
import { agent, everything, recordingServer } from '../scenarios/governance/support.ts'
import { type ConfigInput, poll, quickSupervision, startTestGateway } from '../support/gateway.ts'

it('leaves no listener on a signal that lives on, however often something was linked to it', () => {
  const { signal } = new AbortController()
  for (let attempt = 0; attempt < 1000; attempt++) onAbort(signal, () => {})()
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

it('calls the listener once: when the signal aborts, or at once if it has', () => {
  const controller = new AbortController()
  let called = 0
  const unlink = onAbort(controller.signal, () => called++)
  controller.abort()
  unlink()
  expect(called).toBe(1)
  onAbort(controller.signal, () => called++)()
  expect(called).toBe(2)
})

const down: Record<string, NonNullable<ConfigInput['servers']>[string]> = {
  'over HTTP': { transport: 'http', url: 'http://127.0.0.1:9/mcp' },
  'over the old stream of events': { transport: 'sse', url: 'http://127.0.0.1:9/sse' },
  'as a program that ends at once': { transport: 'stdio', command: 'false' },
  'as a program that does not exist': { transport: 'stdio', command: '/nowhere/at-all' },
}

it.each(Object.entries(down))('are not left behind by the attempts to reach a server %s', async (_, away) => {
  const signals = new Set<AbortSignal>()
  const { addEventListener } = AbortSignal.prototype
  AbortSignal.prototype.addEventListener = function (this: AbortSignal, ...given: Parameters<typeof addEventListener>) {
    signals.add(this)
    return addEventListener.apply(this, given)
  }
  try {
    const supervision = { ...quickSupervision, backoff: { first: 1, most: 2, factor: 1 } }
    await using gateway = await startTestGateway({ servers: { away } }, { supervision })
    await poll(() => (gateway.gateway.servers.get(undefined, 'away').attempt ?? 0) > 30 || undefined, 40_000)
    const left = [...signals].map((signal) => getEventListeners(signal, 'abort').length)
    expect(Math.max(...left)).toBeLessThan(10)
  } finally {
    AbortSignal.prototype.addEventListener = addEventListener
  }
})

it('are not left behind by calls that share a signal, however they end', async () => {
  const servers = {
    rec: recordingServer().server,
    away: { transport: 'http' as const, url: 'http://127.0.0.1:9/mcp' },
  }
  const rules = [
    { tools: ['rec_*'], action: 'allow' as const },
    { tools: ['rec_write_thing'], action: 'ask' as const },
  ]
  await using gateway = await startTestGateway({ servers, rules })
  await gateway.reach('rec', 'connected')
  const { signal } = new AbortController()
  const ends = new Set<string>()
  for (let round = 0; round < 30; round++) {
    for (const name of ['rec_read_thing', 'rec_write_thing', 'rec_nothing']) {
      const outcome = await gateway.gateway.calls.run(
        { principal: agent('tester'), surface: 'library', selector: everything, name, arguments: {} },
        { signal, present: async () => undefined },
      )
      ends.add(outcome.kind)
    }
  }
  expect([...ends].sort()).toEqual(['answered', 'refused', 'waiting'])
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})
