import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { onAbort } from '../../src/lib/signals.ts'
import { poll, quickSupervision, startTestGateway } from '../support/gateway.ts'

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

it('are not left behind by the attempts to reach a server that is down', async () => {
  const signals = new Set<AbortSignal>()
  const { addEventListener } = AbortSignal.prototype
  AbortSignal.prototype.addEventListener = function (this: AbortSignal, ...given: Parameters<typeof addEventListener>) {
    signals.add(this)
    return addEventListener.apply(this, given)
  }
  try {
    const supervision = { ...quickSupervision, backoff: { first: 1, most: 2, factor: 1 } }
    const servers = { away: { transport: 'http' as const, url: 'http://127.0.0.1:9/mcp' } }
    await using gateway = await startTestGateway({ servers }, { supervision })
    await poll(() => (gateway.gateway.getServer('away').attempt ?? 0) > 60 || undefined)
    const left = [...signals].map((signal) => getEventListeners(signal, 'abort').length)
    expect(Math.max(...left)).toBeLessThan(10)
  } finally {
    AbortSignal.prototype.addEventListener = addEventListener
  }
})
