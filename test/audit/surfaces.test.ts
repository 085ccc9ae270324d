import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { AuditReport, ExportedEntry } from '../../src/contract/audit.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { recording, runCli, type Serving, serve, until } from '../cli/support.ts'
import { temporaryFolder } from '../storage/support.ts'
import { fill, openRecord, tamper } from './support.ts'

/** Somebody outside who keeps what is posted to him. */
const posted: string[] = []
const webhook = createServer((request, response) => {
  let text = ''
  request.on('data', (chunk) => {
    text += chunk
  })
  request.on('end', () => {
    posted.push(text)
    response.writeHead(posted.length === 1 ? 503 : 204).end()
  })
})
let gateway: Serving
let outside: string

beforeAll(async () => {
  await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve))
  const address = webhook.address()
  const port = typeof address === 'object' && address ? address.port : 0
  gateway = await serve({
    servers: { files: recording() },
    rules: [
      { tools: 'files_*', action: 'allow' },
      { tools: 'files_destroy_thing', action: 'deny' },
    ],
    audit: { anchors: { file: 'outside.jsonl', webhook: `http://127.0.0.1:${port}/anchors?secret=1`, every: 1000 } },
  })
  outside = join(gateway.folder, 'outside.jsonl')
  await until(async () =>
    (await gateway.run('tools', 'list', '--json')).stdout.includes('files_write_thing') ? true : undefined,
  )
  await gateway.run('tools', 'call', 'files_write_thing', '--args', '{"n":1,"text":"=1+1"}')
  await gateway.run('tools', 'call', 'files_read_thing', '--args', '{"n":2}')
  await gateway.run('tools', 'call', 'files_destroy_thing', '--args', '{"n":3}')
})

afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  webhook.close()
})

const report = (stdout: string) => AuditReport.parse(JSON.parse(stdout))

it('proves the record of a running gateway by the CLI and by REST, in words and for programs', async () => {
  const words = await gateway.run('audit', 'verify')
  expect(words).toMatchObject({ code: 0 })
  expect(words.stdout).toContain('No findings.')
  expect(words.stdout).toContain('Not checked:')
  const json = await gateway.run('audit', 'verify', '--json')
  expect(report(json.stdout)).toMatchObject({ clean: true, keyed: true, chains: 1 })
  const token = (await readFile(join(gateway.data, 'admin-token'), 'utf8')).trim()
  const answer = await gateway.fetch('/api/audit/verify', { token })
  expect(AuditReport.parse(await answer.json()).clean).toBe(true)
})

it('writes anchors outside: into its folder, into a file elsewhere, and to an address that fails at first', async () => {
  const lines = (file: string) => readFileSync(file, 'utf8').trim().split('\n')
  await until(() => (posted.length >= 3 ? true : undefined))
  const anchors = await until(() => (lines(outside).length >= 2 ? lines(outside) : undefined))
  for (const line of anchors) expect(ExportedEntry.parse(JSON.parse(line)).kind).toBe('anchor')
  expect(posted[0]).toBe(posted[1]) // tried again
  expect(lines(join(gateway.data, 'anchors.jsonl'))).toEqual(expect.arrayContaining([posted[1]]))
  const { stdout } = await gateway.run('status', '--json')
  const targets = JSON.parse(stdout).anchors.map(({ target }: { target: string }) => target)
  expect(targets).toHaveLength(3)
  expect(stdout).not.toContain('secret=1')
})

it('exports the record as lines that prove themselves, also without the gateway and without the key', async () => {
  const file = join(temporaryFolder(), 'audit.jsonl')
  expect(await gateway.run('audit', 'export', '--output', file)).toMatchObject({ code: 0 })
  const whole = report((await gateway.run('audit', 'verify', '--file', file, '--json')).stdout)
  expect(whole).toMatchObject({ clean: true, keyed: true })
  expect(whole.entries).toBeGreaterThan(6)

  const elsewhere = { cwd: temporaryFolder() }
  const data = ['--data', join(elsewhere.cwd, 'none')]
  const keyless = await runCli(['audit', 'verify', '--file', file, '--json', ...data], elsewhere)
  expect(report(keyless.stdout)).toMatchObject({ clean: true, keyed: false })
  expect(keyless.stdout).toContain('Without the key no content is proven')

  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  const changed = join(elsewhere.cwd, 'changed.jsonl')
  const tries: [string, string[]][] = [
    ['altered', lines.map((line, index) => (index === 2 ? line.replace('"at":1', '"at":2') : line))],
    ['missing', lines.filter((_, index) => index !== 3)],
    ['order', [...lines.slice(0, 3), ...lines.slice(4, 5), ...lines.slice(3, 4), ...lines.slice(5)]],
  ]
  for (const [kind, altered] of tries) {
    writeFileSync(changed, `${altered.join('\n')}\n`)
    const found = await gateway.run('audit', 'verify', '--file', changed, '--json')
    expect(found.code).toBe(1)
    expect(report(found.stdout).findings.map((finding) => finding.kind)).toContain(kind)
  }
})

it('exports for spreadsheets without anything that they would run', async () => {
  const { stdout } = await gateway.run('audit', 'export', '--format', 'csv')
  const [head, ...rows] = stdout.split('\r\n')
  expect(head).toBe('at,kind,principal,subject,call,body,instance,sequence,hash')
  expect(rows.length).toBeGreaterThan(6)
  const token = (await readFile(join(gateway.data, 'admin-token'), 'utf8')).trim()
  const answer = await gateway.fetch('/api/audit/export?format=csv&kind=outcome', { token })
  expect(answer.headers.get('content-type')).toContain('text/csv')
  expect(answer.headers.get('transfer-encoding')).toBe('chunked')
  expect((await answer.text()).match(/,outcome,/g)).toHaveLength(3)
  const wrong = await gateway.fetch('/api/audit/export?format=xml', { token })
  expect(wrong.status).toBe(400)
  expect((await gateway.fetch('/api/audit/export')).status).toBe(401)
})

it('lists the record by who, what, outcome and time', async () => {
  const list = async (...filter: string[]) =>
    JSON.parse((await gateway.run('audit', 'list', '--json', ...filter)).stdout).items.map(
      (entry: { kind: string; subject: string }) => `${entry.kind} ${entry.subject}`,
    )
  expect(await list('--state', 'denied')).toEqual(['outcome files_destroy_thing'])
  expect(await list('--tool', 'files_*_thing', '--kind', 'outcome')).toHaveLength(3)
  expect(await list('--tool', 'FILES_*')).toEqual([])
  expect(await list('--server', 'files', '--principal', 'user:admin-token', '--kind', 'intent')).toHaveLength(2)
  expect(await list('--server', 'other')).toEqual([])
  expect(await list('--owner', 'ada')).toEqual([])
  expect(await list('--since', '2999-01-01')).toEqual([])
  expect(await list('--until', '2000-01-01T00:00:00Z')).toEqual([])
  expect((await list('--since', '2000-01-01')).length).toBeGreaterThan(6)
  expect(await gateway.run('audit', 'list', '--since', 'yesterday')).toMatchObject({ code: 2 })
})

it('proves the record of a gateway that was killed, straight from its folder, and finds what was done to it', async () => {
  await gateway.stop('SIGKILL')
  const clean = await gateway.run('audit', 'verify', '--json')
  expect(clean.stderr).toContain('No gateway runs')
  expect(report(clean.stdout)).toMatchObject({ clean: true, keyed: true })

  const copy = join(temporaryFolder(), 'data')
  cpSync(gateway.data, copy, { recursive: true })
  tamper(copy, (file) => file.exec('update audit set body = replace(body, \'"n":1\', \'"n":7\')'))
  const altered = await runCli(['audit', 'verify', '--data', copy])
  expect(altered).toMatchObject({ code: 1 })
  expect(altered.stdout).toContain('was changed after the gateway wrote it')

  // Whoever holds the data folder cuts the anchors in it as well; those elsewhere he does not reach.
  cpSync(gateway.data, copy, { recursive: true })
  writeFileSync(join(copy, 'anchors.jsonl'), '')
  tamper(copy, (file) => file.exec('delete from audit where sequence > 3; delete from calls'))
  expect(report((await runCli(['audit', 'verify', '--json', '--data', copy])).stdout).clean).toBe(true)
  const told = await runCli(['audit', 'verify', '--json', '--data', copy, '--anchors', outside])
  expect(report(told.stdout).findings).toMatchObject([{ kind: 'cut' }])
})

it('says at the terminal that retention is on hold after a long pause, and goes on when the clock is confirmed', async () => {
  const data = join(temporaryFolder(), 'data')
  const now = () => Date.now() - 20 * 86_400_000
  const old = await openRecord(data, { clock: { ...systemClock, now } })
  await fill(old.storage, 2, now)
  await old.close()
  await using started = await serve({ audit: { retention: 5 } }, '--data', data)
  const run = (...words: string[]) => runCli([...words, '--data', data])
  const held = await until(async () => {
    const { stdout } = await run('status')
    return stdout.includes('on hold') ? stdout : undefined
  })
  expect(held).toContain('20 days ahead of the last confirmed time')
  const doctor = await run('doctor')
  expect(doctor.stdout).toContain('Retention is on hold')
  expect(doctor.stdout).toContain('sallyport audit confirm-clock')

  const agent = (await run('tokens', 'create', '--agent', 'tester', '--json')).json().token
  const asked = { method: 'POST', body: { time: new Date().toISOString() }, token: String(agent) }
  expect((await started.fetch('/api/audit/clock', asked)).status).toBe(403)
  expect(await run('audit', 'confirm-clock', '--time', '2020-01-01T00:00:00Z')).toMatchObject({ code: 2 })
  expect(await run('audit', 'confirm-clock')).toMatchObject({ code: 0, stdout: expect.stringContaining('5 days') })
  const status = await until(async () => {
    const { stdout } = await run('status')
    return stdout.includes('removed') ? stdout : undefined
  })
  expect(status).not.toContain('on hold')
  const { stdout, code } = await run('audit', 'verify')
  expect(stdout).toContain('Removed by retention:')
  expect(code).toBe(0)
})
