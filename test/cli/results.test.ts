import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readRecord } from '../fixtures/fixtures.ts'
import { toFields } from '../fixtures/lib/json-rpc.ts'
import { createFolder, type Folder, recording, type Served, serveHere, until } from './support.ts'

const whole = Array.from({ length: 900 }, (_, n) => `line ${n} é`).join('\n')
const hostile = 'red\x1b[31m turned\u202e hidden\u200b\u{e0041} clear\x9b2J'
const hidden = /[\x1b\x9b\u202e\u200b\u{e0041}]/u

let gateway: Served
let folder: Folder
let record: string

beforeAll(async () => {
  folder = await createFolder()
  record = join(folder.path, 'record')
  gateway = await serveHere({
    servers: { rec: recording('--record', record) },
    rules: [{ tools: '*', action: 'allow' }],
    limits: { result: 2000 },
  })
  await until(async () =>
    (await gateway.run('tools', 'list', '--json')).stdout.includes('rec_echo') ? true : undefined,
  )
}, 60_000)

afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await folder?.[Symbol.asyncDispose]()
})

const call = (tool: string, given: object, ...more: string[]) =>
  gateway.run('tools', 'call', tool, '--args', JSON.stringify(given), ...more)

describe('a result that was cut', () => {
  it('is shown as far as it goes, with the command that shows the rest, which does', async () => {
    const cut = await call('rec_echo', { text: whole })
    expect(cut.code).toBe(0)
    expect(
      cut.stdout.startsWith(`${whole.slice(0, 2000)}\n[cut by Sallyport: 2000 of ${whole.length} characters]\n`),
    ).toBe(true)
    const [, given = ''] =
      /^Next: sallyport tools call sallyport_read_result --args '(.*)' for the rest, .*--full/m.exec(cut.stderr) ?? []
    const rest = await call('sallyport_read_result', JSON.parse(given))
    expect(rest).toMatchObject({ code: 0, stdout: expect.stringContaining(whole.slice(2000, 4000)) })
  })

  it('is shown whole with --full, to people and to programs', async () => {
    const shown = await call('rec_echo', { text: whole }, '--full')
    expect(shown).toMatchObject({ code: 0, stdout: `${whole}\n` })
    expect(shown.stderr).not.toContain('Next')
    const told = await call('rec_echo', { text: whole }, '--full', '--json')
    expect(told.json()).toMatchObject({ result: { content: [{ type: 'text', text: whole }], _meta: {} } })
  })

  it('is whole with --full also where structured content or a picture was left out', async () => {
    const rows = await call('rec_rows', { count: 6000 }, '--full', '--json')
    expect(rows.code).toBe(0)
    const { structuredContent } = toFields(rows.json().result)
    expect(toFields(structuredContent).rows).toHaveLength(6000)
    const picture = await call('rec_picture', { bytes: 60_000 }, '--full', '--json')
    const data = Buffer.alloc(60_000).toString('base64')
    expect(picture.json()).toMatchObject({ result: { content: [{ type: 'image', data }] } })
    const left = await call('rec_picture', { bytes: 60_000 })
    expect(left.stdout).toContain('[left out by Sallyport: 1 part (image)')
    expect(left.stderr).toContain('sallyport_read_result')
  })
})

it('runs a call once with --key', async () => {
  const first = await call('rec_write_thing', { n: 77 }, '--key', 'order 77', '--json')
  const second = await call('rec_write_thing', { n: 77 }, '--key', 'order 77', '--json')
  expect([first.code, second.stdout]).toEqual([0, first.stdout])
  expect((await readRecord(record)).filter((line) => line.arguments?.n === 77)).toHaveLength(1)
  const other = await call('rec_write_thing', { n: 78 }, '--key', 'order 77')
  expect(other).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('used for another tool, or with other arguments'),
  })
  expect(await call('rec_write_thing', {}, '--key', '')).toMatchObject({ code: 2 })
})

describe('what a server says', () => {
  it('reaches people visibly, programs as it is, and nothing of it is obeyed by a terminal', async () => {
    const shown = await call('rec_echo', { text: hostile })
    expect(shown.stdout).toContain('red\\u{1b}[31m turned\\u{202e} hidden\\u{200b}\\u{e0041} clear\\u{9b}2J')
    const told = await call('rec_echo', { text: hostile }, '--json')
    expect(told.json()).toMatchObject({ result: { content: [{ text: hostile }] } })
    const { id } = toFields(told.json().call)
    const audit = await gateway.run('audit', 'show', String(id))
    const calls = await gateway.run('calls', 'list')
    const entries = await gateway.run('audit', 'list')
    const missing = await gateway.run('tools', 'call', `none${hostile}`)
    for (const { stdout, stderr } of [shown, told, audit, calls, entries, missing]) {
      expect(stdout).not.toMatch(hidden)
      expect(stderr).not.toMatch(hidden)
    }
    expect(audit.stdout).toContain('\\u{202e}')
  })

  it('is visible in errors over REST as well', async () => {
    const { token } = toFields((await gateway.run('tokens', 'create', '--agent', 'bot', '--json')).json())
    const response = await gateway.fetch(`/api/tools/${encodeURIComponent(`x${hostile}`)}`, { token: String(token) })
    const { error } = toFields(await response.json())
    expect(response.status).toBe(404)
    expect(String(toFields(error).message)).toContain('\\u{202e}')
    expect(String(toFields(error).message)).not.toMatch(hidden)
  })
})
