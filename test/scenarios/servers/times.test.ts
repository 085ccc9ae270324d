import { describe, expect, it } from 'vitest'
import type { ServerDefinition } from '../../../src/contract/server.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { databases, placeOn } from '../../storage/support.ts'
import { administrator, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'

const disabled = (url: string) => ({ transport: 'http' as const, url, enabled: false })
const address = 'http://127.0.0.1:1/mcp'
const timesOf = ({ gateway }: TestGateway, name: string) => {
  const { createdAt = '', updatedAt = '' } = gateway.servers.get(administrator, name)
  return { createdAt, updatedAt }
}

describe.each(databases)('the times of a server on %s', (kind) => {
  it('are those of its entry: a change moves one, a restart none, and a server that returns begins again', async () => {
    const { folder, databaseUrl } = await placeOn(kind)
    let offset = 0
    const clock = { ...systemClock, common: true as const, now: () => systemClock.now() + offset }
    const later = () => {
      offset += 60_000
    }
    const config = { servers: { files: disabled(address), mail: disabled(address) } }
    const options = { folder, databaseUrl, clock, wait: false }
    const first = await startTestGateway(config, options)
    const atFirst = timesOf(first, 'files')
    expect(atFirst.createdAt).not.toBe('')
    expect(atFirst.updatedAt).toBe(atFirst.createdAt)

    later()
    const definition = disabled('http://127.0.0.1:1/other') as ServerDefinition
    const changed = await first.gateway.servers.change(administrator, { name: 'files', definition })
    expect(changed.createdAt).toBe(atFirst.createdAt)
    expect(Date.parse(changed.updatedAt ?? '') - Date.parse(atFirst.createdAt)).toBeGreaterThanOrEqual(60_000)
    expect(first.gateway.servers.list(administrator).find(({ name }) => name === 'mail')).toMatchObject(
      timesOf(first, 'mail'),
    )
    const mail = timesOf(first, 'mail')
    expect(mail.updatedAt).toBe(mail.createdAt)

    later()
    await first.gateway.servers.remove(administrator, 'mail')
    later()
    const again = await first.gateway.servers.add(administrator, { name: 'mail', definition })
    expect(Date.parse(again.createdAt ?? '')).toBeGreaterThan(Date.parse(mail.createdAt))
    const before = [timesOf(first, 'files'), timesOf(first, 'mail')]
    await first.close()

    const edited = {
      servers: { files: disabled('http://127.0.0.1:1/other'), mail: disabled('http://127.0.0.1:1/other') },
    }
    await using second = await startTestGateway(edited, options)
    expect([timesOf(second, 'files'), timesOf(second, 'mail')]).toEqual(before)
    if (databaseUrl === undefined) {
      later()
      await second.writeConfig(config)
      await poll(() => timesOf(second, 'files').updatedAt !== before[0]?.updatedAt || undefined)
      expect(timesOf(second, 'files').createdAt).toBe(atFirst.createdAt)
    }
  })
})
