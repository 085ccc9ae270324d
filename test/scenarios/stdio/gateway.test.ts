import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { takePort } from '../../cli/support.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll } from '../../support/gateway.ts'
import { rounds } from '../../support/rounds.ts'
import { textOf } from '../mcp/raw.ts'
import { createPlace, end, isServed, none, type Program, readCommand, serveInTurn } from './support.ts'

async function echo(program: Program, text: string): Promise<unknown> {
  let attempt = 0
  return poll(async () => {
    const id = `${text} ${++attempt}`
    const { result } = await program.ask(id, 'tools/call', { name: 'rec_echo', arguments: { text } })
    return result
  }, 30_000)
}

describe('a gateway that nobody has started', () => {
  it('is started once, however many programs want it at the same moment, and all of them join it', async () => {
    await using place = await createPlace()
    const programs = Array.from({ length: 6 }, () => place.program())
    await Promise.all(programs.map(isServed))
    const note = await place.note()
    expect(note).toMatchObject({ lingers: true })
    await poll(async () => ((await place.gateways()).length === 1 ? true : undefined))
    expect(await place.gateways()).toEqual([note?.pid])
    expect(await Promise.all(programs.map((program) => program.end()))).toEqual([0, 0, 0, 0, 0, 0])
    await poll(() => none(place))
  })

  it('stays while one program uses it, and ends with the last one', async () => {
    await using place = await createPlace()
    const [first, second] = [place.program(), place.program()]
    await Promise.all([isServed(first), isServed(second)])
    const { pid } = (await place.note()) ?? {}
    expect(await first.end()).toBe(0)
    expect(textOf(toFields(await echo(second, 'still here')))).toBe('still here')
    expect((await place.note())?.pid).toBe(pid)
    await second.end()
    await poll(() => none(place))
    expect(await place.note()).toBeUndefined()
  })

  it('ends also when its last program was killed', async () => {
    await using place = await createPlace()
    const program = place.program()
    await isServed(program)
    await program.kill('SIGKILL')
    await poll(() => none(place))
  })

  it('serves each of several programs that come just as it ends, or makes room for the next gateway', async () => {
    await using place = await createPlace({ servers: {} })
    const pauses = Array.from({ length: 12 }, (_, round) => round * 20)
    await serveInTurn(place, rounds([0, 60, 160], pauses))
  })

  it('runs apart from the program that started it, with a log of its own and no token on its command line', async () => {
    await using place = await createPlace()
    place.environment.SALLYPORT_TOKEN = ''
    const [first, second] = [place.program(), place.program()]
    await Promise.all([isServed(first), isServed(second)])
    const [pid = 0] = await poll(async () => {
      const running = await place.gateways()
      return running.length === 1 ? running : undefined
    })
    expect(readCommand(pid).join(' ')).not.toContain('sp_')
    expect(await readFile(`/proc/${pid}/environ`, 'utf8')).not.toContain('SALLYPORT_TOKEN')
    expect(await readFile(join(place.data, 'gateway.log'), 'utf8')).toContain('MCP address')
    await first.kill('SIGKILL')
    expect(textOf(toFields(await echo(second, 'alive')))).toBe('alive')
  })

  it('takes the configured port, or a free one if somebody else has it', async () => {
    await using taken = await takePort()
    await using place = await createPlace({ listen: { port: taken.port } })
    const program = place.program()
    await isServed(program)
    expect((await place.note())?.url).not.toContain(`:${taken.port}`)
    await program.end()
  })

  it('gets a configuration of its own in an empty data folder, whoever writes it first', async () => {
    await using place = await createPlace()
    const data = join(place.folder, 'home', '.sallyport')
    const programs = Array.from({ length: 4 }, () => place.program('--data', data))
    await Promise.all(programs.map(isServed))
    expect(await readFile(join(data, 'sallyport.yaml'), 'utf8')).toContain('# port: 4777')
    await Promise.all(programs.map((program) => program.end()))
    await poll(async () => ((await stat(join(data, 'gateway.json')).catch(() => undefined)) ? undefined : true))
  })

  it('is told apart from a stale note, and from whatever listens there now', async () => {
    await using place = await createPlace()
    const other = createServer((_request, response) => response.writeHead(200).end('something else'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const address = other.address()
    const port = typeof address === 'object' && address ? address.port : 0
    await mkdir(place.data, { recursive: true })
    const note = { url: `http://127.0.0.1:${port}`, pid: 1, instance: 'instance_gone' }
    await writeFile(join(place.data, 'gateway.json'), JSON.stringify(note))
    const program = place.program()
    await isServed(program)
    expect((await place.note())?.url).not.toBe(note.url)
    other.close()
  })

  it('is started after all when the one that had the folder dies before it serves', async () => {
    await using place = await createPlace()
    await mkdir(place.data, { recursive: true })
    const lock = new Sqlite(join(place.data, 'gateway.lock'))
    lock.exec('begin exclusive')
    const program = place.program()
    // One gateway tries and gives up: only then does the folder become free.
    await poll(async () => ((await place.gateways()).length > 0 ? true : undefined))
    await poll(() => none(place))
    lock.close()
    await isServed(program)
  })

  it('that cannot start is explained in the answer, and tried again with the next request', async () => {
    await using place = await createPlace({ listen: { port: 0 } })
    await writeFile(place.configFile, '{ "servres": {} }')
    const program = place.program()
    const { error } = await program.ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
    expect(error).toMatchObject({ data: { code: 'config-invalid' } })
    await poll(() => program.stderr().includes('The gateway could not start') || undefined)
    await place.writeConfig({})
    await isServed(program)
  })
})

describe('a gateway that somebody runs', () => {
  it('is joined and never ended', async () => {
    await using place = await createPlace()
    const gateway = await place.serve()
    const program = place.program()
    await isServed(program)
    expect(await place.gateways()).toEqual([gateway.pid])
    expect(await program.end()).toBe(0)
    const again = place.program()
    await isServed(again)
    expect(await place.gateways()).toEqual([gateway.pid])
    await again.end()
  })

  it('may be restarted: requests fail with a clear text meanwhile, then they work again', async () => {
    await using place = await createPlace()
    const gateway = await place.serve()
    const program = place.program()
    await isServed(program)
    await echo(program, 'before')
    await end(gateway, 'SIGTERM')
    const { error } = await program.ask('meanwhile', 'tools/list')
    expect(error).toMatchObject({ message: expect.stringContaining('has ended'), data: { code: 'unreachable' } })
    expect(await place.gateways()).toEqual([])
    await place.serve()
    expect(textOf(toFields(await echo(program, 'after')))).toBe('after')
    expect(await program.end()).toBe(0)
  })
})

describe('who calls', () => {
  it('is the agent stdio by a token that only the user can read, and a name of its own if one is given', async () => {
    await using place = await createPlace()
    const programs = [place.program(), place.program(), place.program('--agent', 'cursor')]
    await Promise.all(programs.map(isServed))
    const file = join(place.data, 'agent-token.stdio')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const { items } = JSON.parse((await place.run('tokens', 'list', '--json')).stdout)
    const valid = items.filter((token: { revokedAt?: string }) => token.revokedAt === undefined)
    expect(valid.map(({ agent }: { agent: string }) => agent).sort()).toEqual(['cursor', 'stdio'])
    const text = await readFile(file, 'utf8')
    await Promise.all(programs.map((program) => program.end()))
    await poll(() => none(place))
    const later = place.program()
    await isServed(later)
    expect(await readFile(file, 'utf8')).toBe(text)
  })

  it('gets a new token when the data were replaced, but not when somebody revoked it', async () => {
    await using place = await createPlace()
    await mkdir(place.data, { recursive: true, mode: 0o700 })
    const file = join(place.data, 'agent-token.stdio')
    await writeFile(file, `sp_0123456789_${'x'.repeat(43)}\n`, { mode: 0o600 })
    const first = place.program()
    await isServed(first)
    const { items } = JSON.parse((await place.run('tokens', 'list', '--json')).stdout)
    expect((await place.run('tokens', 'revoke', items[0].id, '--yes')).code).toBe(0)
    const refusal = { message: expect.stringContaining(`remove ${file}`), data: { code: 'token-invalid' } }
    const second = place.program()
    const { error } = await second.ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
    expect(error).toMatchObject(refusal)
    expect((await first.ask(1, 'tools/list')).error).toMatchObject(refusal)
    await rm(file)
    await isServed(second)
    expect((await first.ask(2, 'tools/list')).result).toBeDefined()
  })

  it('is whoever the given token belongs to', async () => {
    await using place = await createPlace()
    await place.serve()
    const { token } = JSON.parse((await place.run('tokens', 'create', '--agent', 'mine', '--json')).stdout)
    const program = place.program('--token', token)
    await isServed(program)
    await echo(program, 'by mine')
    const { items } = JSON.parse((await place.run('calls', 'list', '--json')).stdout)
    expect(items[0]).toMatchObject({ principal: 'agent:mine' })
    const wrong = place.program('--token', 'sp_wrong')
    const { error } = await wrong.ask(1, 'initialize', {})
    expect(error).toMatchObject({ data: { code: 'token-invalid' } })
  })
})
