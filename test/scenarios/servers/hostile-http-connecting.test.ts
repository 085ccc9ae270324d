import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { poll } from '../../support/gateway.ts'
import { call, startHttpScene, startSceneWith } from './support.ts'

describe('a server that answers nothing properly', () => {
  it.each([
    ['html', 'failed', { code: 'server-broken', class: 'protocol' }],
    ['redirect', 'failed', { code: 'connect-failed', class: 'protocol' }],
    ['unauthorized', 'auth-required', { code: 'server-auth', class: 'auth' }],
    ['not-found', 'failed', { code: 'connect-failed', class: 'protocol' }],
  ] as const)('but %s is %s, and hurts nobody else', async (mode, state, error) => {
    await using scene = await startHttpScene(mode)
    const server = await scene.test.reach('bad', state)
    expect(server.error).toMatchObject(error)
    expect(server.error?.hint).not.toBe('')
    await scene.expectOthersWell()
    expect(await call(scene.client, 'bad_ok')).toMatchObject({ code: 'tool-not-found' })
  })

  it('but status 500 has failed itself: it was reached, and is tried again', async () => {
    await using scene = await startHttpScene('server-error', ['--on', 'everything'])
    const { error } = await scene.test.reach('bad', 'failed')
    expect(error).toMatchObject({ code: 'server-failed', class: 'server' })
    expect(error?.message).toContain('HTTP status 500')
    await poll(() => ((scene.gateway.servers.get(undefined, 'bad').attempt ?? 0) > 1 ? true : undefined))
  })

  it.each(['hang', 'reset', 'server-error', 'too-many', 'gzip-bomb', 'huge-chunked', 'endless-event'] as const)(
    'but %s to everything fails, is tried again, and hurts nobody else',
    async (mode) => {
      await using scene = await startHttpScene(mode, ['--on', 'everything'], {
        timeout: { connect: 500 },
        limits: { message: 1_000_000 },
      })
      const server = await scene.test.reach('bad', 'failed')
      expect(server.error?.class).not.toBe('unknown')
      await poll(() => ((scene.gateway.servers.get(undefined, 'bad').attempt ?? 0) > 1 ? true : undefined))
      await scene.expectOthersWell()
    },
  )

  it('cannot send the gateway elsewhere: nothing reaches the target of a redirect', async () => {
    let reached = 0
    const target = createServer((_request, response) => {
      reached += 1
      response.end()
    })
    target.on('connection', () => {
      reached += 1
    })
    target.listen(0, '127.0.0.1')
    await once(target, 'listening')
    const address = target.address()
    const port = typeof address === 'object' ? address?.port : 0
    try {
      await using scene = await startHttpScene('redirect', ['--to', `http://127.0.0.1:${port}/mcp?secret=1`])
      const { error } = await scene.test.reach('bad', 'failed')
      expect(error?.message).toContain('redirects are not followed')
      await poll(() => ((scene.gateway.servers.get(undefined, 'bad').attempt ?? 0) > 1 ? true : undefined))
      expect(reached).toBe(0)
    } finally {
      target.close()
    }
  })

  it.each(['http', 'sse'] as const)(
    'but takes the connection and says nothing, fails in time over %s',
    async (transport) => {
      const silent = createServer(() => {})
      silent.listen(0, '127.0.0.1')
      await once(silent, 'listening')
      const address = silent.address()
      const port = typeof address === 'object' ? address?.port : 0
      try {
        const bad = { transport, url: `http://127.0.0.1:${port}/mcp`, timeout: { connect: 500 } }
        await using scene = await startSceneWith(bad, { wait: false })
        const { error } = await scene.test.reach('bad', 'failed')
        expect(error).toMatchObject({ code: 'call-timeout', class: 'timeout' })
        await scene.expectOthersWell()
      } finally {
        silent.closeAllConnections()
        silent.close()
      }
    },
  )

  it('because nothing is there is unreachable, and the hint says so', async () => {
    await using scene = await startSceneWith({ transport: 'http', url: 'http://127.0.0.1:9/mcp' })
    const { error } = await scene.test.reach('bad', 'failed')
    expect(error).toMatchObject({ code: 'connect-failed', class: 'unreachable' })
    expect(error?.message).toContain('ECONNREFUSED')
    expect(error?.hint).toContain('No program listens')
    await scene.expectOthersWell()
  })

  it('because its name leads nowhere is unreachable', async () => {
    await using scene = await startSceneWith({ transport: 'http', url: 'http://no-such-host.invalid/mcp' })
    const { error } = await scene.test.reach('bad', 'failed')
    expect(error).toMatchObject({ code: 'connect-failed', class: 'unreachable' })
    await scene.expectOthersWell()
  })
})
