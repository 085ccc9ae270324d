import { describe, expect, it } from 'vitest'
import { ServerDefinition } from '../../../src/contract/server.ts'
import { createMasking } from '../../../src/masking/masking.ts'
import { createServerLogs } from '../../../src/servers/logs.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { operator } from './support.ts'

const member = { kind: 'user', name: 'kim', role: 'member', person: true } as const

/** Ends at once with a message, as a program does that misses a setting. */
function failing(script: string) {
  return { transport: 'stdio' as const, command: process.execPath, args: ['-e', script] }
}

describe('a program that ends before it answers', () => {
  it('is shown with what it wrote to standard error last', async () => {
    const broken = failing(`console.error('API_KEY is missing'); console.error('Usage: server KEY'); process.exit(3)`)
    await using gateway = await startTestGateway({ servers: { broken } }, { wait: false })
    const { error } = await gateway.reach('broken', 'failed')
    expect(error).toMatchObject({
      class: 'spawn',
      message: 'The program ended with code 3',
      output: ['API_KEY is missing', 'Usage: server KEY'],
    })
    expect(gateway.gateway.servers.get(undefined, 'broken').error?.output).toEqual(error?.output)
  })

  it('is shown with the message of its exception, without the frames of the stack', async () => {
    const broken = failing(`require('./missing-module')`)
    await using gateway = await startTestGateway({ servers: { broken } }, { wait: false })
    const { error } = await gateway.reach('broken', 'failed')
    expect(error?.output?.some((line) => line.includes("Cannot find module './missing-module'"))).toBe(true)
    expect(error?.output?.filter((line) => line.trim().startsWith('at '))).toEqual([])
  })

  it('is shown in the same way when it is only tried', async () => {
    await using gateway = await startTestGateway({ servers: {} })
    const definition = ServerDefinition.parse(failing(`console.error('no licence'); process.exit(1)`))
    const { failure } = await gateway.gateway.servers.validate(operator, { definition }, new AbortController().signal)
    expect(failure?.output).toEqual(['no licence'])
  })

  it('shows what it wrote only to those who may read its logs', async () => {
    const broken = failing(`console.error('inner details'); process.exit(1)`)
    await using gateway = await startTestGateway({ servers: { broken } }, { wait: false })
    await gateway.reach('broken', 'failed')
    const seen = [gateway.gateway.servers.get(member, 'broken'), ...gateway.gateway.servers.list(member)]
    expect(seen.map(({ error }) => error?.message)).toEqual(Array(2).fill('The program ended with code 1'))
    expect(JSON.stringify(seen)).not.toContain('inner details')
    expect(JSON.stringify(gateway.gateway.servers.list(operator))).toContain('inner details')
  })
})

describe('the last lines of a program', () => {
  const push = (logs: ReturnType<typeof createServerLogs>, text: string) => logs.push(Buffer.from(text))

  it('are of its last start only, at most twelve, and each of a length that can be shown', () => {
    const logs = createServerLogs(64 * 1024, createMasking())
    push(logs, 'from an earlier start\n')
    logs.begin()
    push(logs, `${Array.from({ length: 20 }, (_, index) => `line ${index}`).join('\n')}\n\n${'x'.repeat(5000)}\n`)
    const lines = logs.lastLines()
    expect(lines).toHaveLength(12)
    expect(lines[0]).toBe('line 9')
    expect(lines.at(-1)?.length).toBeLessThan(500)
    logs.begin()
    expect(logs.lastLines()).toEqual([])
  })

  it('are masked, and hold nothing that a terminal obeys', () => {
    const masking = createMasking()
    masking.hide('a-very-secret-value')
    const logs = createServerLogs(64 * 1024, masking)
    push(logs, 'token a-very-secret-value \u001b[31mrefused\u001b[0m \u202eevil\n')
    expect(logs.lastLines()).toEqual(['token [secret] refused \\u{202e}evil'])
  })
})
