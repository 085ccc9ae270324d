import { createColors } from 'picocolors'
import { describe, expect, it } from 'vitest'
import { createStateReporter } from '../../src/cli/commands/serve/server-states.ts'
import type { Server } from '../../src/contract/server.ts'

const minute = 60_000

function createScene() {
  const lines: string[] = []
  let now = Date.UTC(2026, 0, 1, 12)
  const log = { event: (text: string) => void lines.push(text), notice() {} }
  const report = createStateReporter({ colours: createColors(false), log, now: () => now })
  const wait = (milliseconds: number) => {
    now += milliseconds
  }
  const fail = (message: string, more: Partial<Server> = {}) =>
    report(
      toServer({
        state: 'failed',
        error: { code: 'server-broken', class: 'spawn', message, hint: 'Mend it.', at: new Date(now).toISOString() },
        nextAttemptAt: new Date(now + 1000).toISOString(),
        ...more,
      }),
    )
  return { lines, report, wait, fail, take: () => lines.splice(0) }
}

function toServer(more: Partial<Server>): Server {
  return {
    id: 'files',
    name: 'files',
    scope: 'global',
    transport: 'stdio',
    enabled: true,
    state: 'connected',
    since: '2026-01-01T12:00:00.000Z',
    tools: 3,
    setAside: 0,
    complete: true,
    ...more,
  }
}

describe('the terminal of serve', () => {
  it('reports a failing server once, then in one line every ten minutes, and when it is connected again', () => {
    const scene = createScene()
    scene.fail('The program ended with code 1')
    expect(scene.take()).toEqual(['failed files, spawn: The program ended with code 1\n  Mend it.'])
    for (let attempt = 0; attempt < 300; attempt++) {
      scene.wait(2000)
      scene.report(toServer({ state: 'connecting', progress: 'starting for 1 s' }))
      scene.fail('The program ended with code 1')
    }
    const [summary, ...more] = scene.take()
    expect(more).toEqual([])
    expect(summary).toMatch(
      /^failed files, 301 failed attempts since \d\d:\d\d:\d\d; last: The program ended with code 1$/,
    )
    scene.report(toServer({ state: 'connected' }))
    expect(scene.take()).toEqual(['connected files, 3 tools after 301 failed attempts'])
  })

  it('counts one failure once, however often it is announced', () => {
    const scene = createScene()
    scene.fail('gone')
    scene.fail('gone')
    scene.report(toServer({ state: 'connected' }))
    expect(scene.lines.at(-1)).toBe('connected files, 3 tools after 1 failed attempt')
  })

  it('reports at once when the gateway stops trying', () => {
    const scene = createScene()
    scene.fail('gone')
    scene.wait(minute)
    scene.fail('connection dropped 5 times', { nextAttemptAt: undefined })
    expect(scene.lines.at(-1)).toContain('failed files, spawn: connection dropped 5 times')
  })

  it('reports a slow start at most every ten seconds', () => {
    const scene = createScene()
    for (let second = 1; second <= 25; second++) {
      scene.wait(1000)
      scene.report(toServer({ state: 'connecting', progress: `starting for ${second} s` }))
    }
    expect(scene.lines).toEqual(['files: starting for 1 s', 'files: starting for 11 s', 'files: starting for 21 s'])
  })
})
