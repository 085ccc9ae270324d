import { once } from 'node:events'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { collect, type Fields, recording, type Serving, serve, startCli, until } from './support.ts'

let gateway: Serving
const children: ReturnType<typeof startCli>[] = []

beforeAll(async () => {
  gateway = await serve({ servers: { rec: recording() }, rules: [{ tools: 'rec_destroy_thing', action: 'deny' }] })
  await gateway.run('servers', 'reconnect', 'rec')
  return () => gateway[Symbol.asyncDispose]()
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

function watch(...words: string[]) {
  const child = startCli(['calls', 'watch', ...words, '--data', gateway.data])
  children.push(child)
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  const lines = () => stdout().split('\n').filter(Boolean)
  /** Calls until one is seen: when the watch listens is not said. */
  const seen = (pattern: RegExp, ...call: string[]) =>
    until(async () => {
      if (call.length > 0) await gateway.run('tools', 'call', ...call)
      return lines().find((line) => pattern.test(line))
    })
  return { child, lines, stderr, seen }
}

it('prints calls as they begin, wait and end, with times and units, until Ctrl+C', async () => {
  const { child, seen, stderr } = watch()
  await seen(/^\d\d:\d\d:\d\d {2}user:admin-token +rec_read_thing +ok +\d+ ms$/, 'rec_read_thing')
  await seen(/rec_read_thing +running$/)
  await seen(/rec_write_thing +waiting$/, 'rec_write_thing', '--no-wait')
  await seen(/rec_destroy_thing +denied +\d+ ms$/, 'rec_destroy_thing')
  child.kill('SIGINT')
  const [code]: (number | null)[] = await once(child, 'close')
  expect([code, stderr()]).toEqual([0, ''])
})

it('begins with calls that have not ended, and prints only what the filters leave', async () => {
  await gateway.run('tools', 'call', 'rec_write_thing', '--arg', 'path=open', '--no-wait')
  const waiting = watch('--state', 'waiting', '--json')
  const document: Fields = JSON.parse(await waiting.seen(/^\{.*"state":"waiting"/))
  expect(document).toMatchObject({ tool: 'rec_write_thing', principal: 'user:admin-token' })
  expect(document).not.toHaveProperty('arguments')
  const denied = watch('--tool', 'rec_destroy_thing', '--state', 'denied')
  await denied.seen(/denied/, 'rec_destroy_thing')
  await gateway.run('tools', 'call', 'rec_read_thing')
  expect(denied.lines().every((line) => /rec_destroy_thing +denied/.test(line))).toBe(true)
  expect(waiting.lines().every((line) => line.includes('"state":"waiting"'))).toBe(true)
})

it('ends with 4 when the gateway stays away', async () => {
  await using other = await serve({ servers: { rec: recording() } })
  const child = startCli(['calls', 'watch', '--retry', '1', '--data', other.data])
  children.push(child)
  const stderr = collect(child, 'stderr')
  const closed: Promise<(number | null)[]> = once(child, 'close')
  await other.run('servers', 'reconnect', 'rec')
  await other.stop()
  const [code] = await closed
  expect(code).toBe(4)
  expect(stderr()).toMatch(/error: .*(No gateway|was lost)/)
})
