import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import {
  collect,
  type Ended,
  type Fields,
  recording,
  runCli,
  type Served,
  serveHere,
  serveWith,
  startCli,
  until,
} from './support.ts'

const password = 'correct horse battery'
let gateway: Served
const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const record = join(folder, 'record.jsonl')
const children: ChildProcess[] = []

beforeAll(async () => {
  gateway = await serveHere(
    {
      servers: { rec: recording('--record', record) },
      limits: { pending: 100 },
      rules: [{ tools: 'rec_plain_thing', action: 'ask', approvers: 'two', name: 'two pairs of eyes' }],
    },
    { SALLYPORT_ADMIN_PASSWORD: password },
  )
  await gateway.run('servers', 'reconnect', 'rec')
  return async () => {
    for (const child of children) child.kill('SIGKILL') // those that a failed test has left
    await gateway[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  }
})

/** A command of the gateway's folder by the person `admin`. */
function asPerson(...words: string[]): Promise<Ended> {
  const all = [...words, '--as', 'admin', '--password-stdin', '--data', gateway.data]
  return runCli(all, { cwd: gateway.folder, input: `${password}\n` })
}

const write = (path: string, ...words: string[]) => [
  'tools',
  'call',
  'rec_write_thing',
  '--arg',
  `path=${path}`,
  ...words,
]

/** Calls a tool that asks, and leaves at once. */
async function ask(path: string): Promise<string> {
  const ended = await gateway.run(...write(path, '--no-wait', '--json'))
  expect(ended.code).toBe(7)
  return idOf(ended.json().approval)
}

/** The same call in a process that waits, and its approval. */
async function askAndWait(path: string, ...words: string[]) {
  const child = startCli([...write(path, ...words), '--data', gateway.data], { cwd: gateway.folder })
  children.push(child)
  child.stdin?.end()
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code)
  const id = await until(() => /approvals\/(approval_\w+)/.exec(stderr())?.[1])
  return { id, child, stdout, stderr, ended }
}

/** A command line that is refused before anything is asked of a gateway. */
function parse(...words: string[]): Promise<unknown> {
  return createProgram({ code: 0, trailing: [] }).parseAsync(words, { from: 'user' })
}

function wrongUsage(flag: string) {
  return { code: 'request-invalid', message: expect.stringContaining(flag) }
}

function idOf(value: unknown): string {
  return String(Object(value).id)
}

function items(document: Fields): Fields[] {
  return Array.isArray(document.items) ? document.items : []
}

async function timesRun(path: string): Promise<number> {
  const lines = (await readFile(record, 'utf8').catch(() => '')).split('\n')
  return lines.filter((line) => line.includes(`"path":"${path}"`)).length
}

describe('a call that waits', () => {
  it('says what it waits for and where, runs once when it is approved, and prints the result', async () => {
    const { token } = (await gateway.run('tokens', 'create', '--agent', 'bot', '--json')).json()
    const waiting = await askAndWait('approved', '--url', gateway.url, '--token', String(token))
    expect(waiting.stderr()).toContain(`${gateway.url}/approvals/${waiting.id}`)
    expect(waiting.stderr()).toContain('Write thing approved')
    expect(await timesRun('approved')).toBe(0)
    const approved = await asPerson('approvals', 'approve', waiting.id)
    expect(approved).toMatchObject({ code: 0, stdout: expect.stringContaining('Approved: Write thing approved') })
    expect(approved.stderr).toMatch(/called by +agent:bot/)
    expect(await waiting.ended).toBe(0)
    expect(waiting.stdout()).toBe('{"path":"approved"}\n')
    expect(await timesRun('approved')).toBe(1)
  })

  it('ends with 6 and the reason when it is denied', async () => {
    const waiting = await askAndWait('denied', '--json')
    const denied = await asPerson('approvals', 'deny', waiting.id, '--reason', 'Use another path', '--json')
    expect(denied.json()).toMatchObject({ state: 'denied', answers: [{ by: 'admin', reason: 'Use another path' }] })
    expect(await waiting.ended).toBe(6)
    expect(JSON.parse(waiting.stdout())).toMatchObject({
      error: { code: 'approval-denied', message: expect.stringContaining('Use another path') },
    })
    expect(await timesRun('denied')).toBe(0)
  })

  it('ends with 7 where nobody wants to wait, and the same command goes on from there', async () => {
    const left = await gateway.run(...write('left', '--no-wait', '--json'))
    expect(left.code).toBe(7)
    expect(left.json()).toMatchObject({ call: { state: 'waiting' }, approval: { state: 'waiting' } })
    const id = idOf(left.json().approval)
    const again = await gateway.run(...write('left', '--no-wait'))
    expect(again).toMatchObject({ code: 7, stdout: expect.stringContaining(id) })
    await asPerson('approvals', 'approve', id)
    expect(await gateway.run(...write('left'))).toMatchObject({ code: 0, stdout: '{"path":"left"}\n' })
    expect(await timesRun('left')).toBe(1)
  })

  it('ends with 7 when it is interrupted, and the approval stays', async () => {
    const waiting = await askAndWait('interrupted')
    waiting.child.kill('SIGINT')
    expect(await waiting.ended).toBe(7)
    expect(waiting.stdout()).toContain(waiting.id)
    expect(waiting.stderr()).toContain('When it is approved, repeat the same command')
    const shown = await gateway.run('approvals', 'show', waiting.id, '--json')
    expect(shown.json()).toMatchObject({ state: 'waiting' })
  })

  it('sends the same idempotency key again', async () => {
    const waiting = await askAndWait('keyed', '--key', 'k-1')
    await asPerson('approvals', 'approve', waiting.id)
    expect(await waiting.ended).toBe(0)
    const repeated = await gateway.run(...write('keyed', '--key', 'k-1'))
    expect(repeated).toMatchObject({ code: 0, stdout: '{"path":"keyed"}\n' })
    expect(await timesRun('keyed')).toBe(1)
  })

  it('ends with 6 when nobody answers in time', async () => {
    await using hasty = await serveWith({}, { servers: { rec: recording() }, limits: { approvalExpiry: 1000 } })
    await hasty.run('servers', 'reconnect', 'rec')
    const ended = await hasty.run('tools', 'call', 'rec_write_thing', '--json')
    expect(ended.code).toBe(6)
    expect(ended.json()).toMatchObject({ error: { code: 'approval-expired' } })
  })
})

describe('approvals', () => {
  it('are listed by state, and shown with every byte of their arguments', async () => {
    const hidden = '{"path":"listed","text":"a\\u200bb","deep":{"list":[1,{"last":"\\u202eend"}]},"to":"p\\u0430ypal"}'
    const asked = await gateway.run('tools', 'call', 'rec_write_thing', '--args', hidden, '--no-wait', '--json')
    const id = idOf(asked.json().approval)
    const listed = await gateway.run('approvals', 'list', '--state', 'waiting', '--json')
    expect(items(listed.json())).toContainEqual(expect.objectContaining({ id, risk: 'write' }))
    expect((await gateway.run('approvals', 'list')).stdout).toMatch(new RegExp(`${id} .* write .*waiting`))
    const { stdout } = await gateway.run('approvals', 'show', id)
    for (const fact of [
      'Write thing listed',
      '"a\\u{200b}b"',
      '"last": "\\u{202e}end"',
      '"to": "p\\u{430}ypal"',
      'no rule matches',
      'user:admin-token',
      'the owner of the agent, or an administrator',
      'in 10 min',
    ])
      expect(stdout).toContain(fact)
    expect(await gateway.run('approvals', 'show', 'approval_none', '--json')).toMatchObject({ code: 1 })
    await expect(parse('approvals', 'list', '--state', 'odd')).rejects.toMatchObject(wrongUsage('--state'))
  })

  it('are answered by a person and by no token', async () => {
    const id = await ask('token')
    for (const words of [
      ['approve', id],
      ['deny', id, '--reason', 'x'],
    ]) {
      const refused = await gateway.run('approvals', ...words, '--json')
      expect(refused.code).toBe(3)
      expect(refused.json()).toMatchObject({ error: { code: 'person-needed', hint: expect.stringContaining('--as') } })
    }
  })

  it('are shown whole before the answer is sent', async () => {
    const id = await ask('whole')
    const answered = await asPerson('approvals', 'approve', id)
    expect(answered.stderr).toContain('"path": "whole"')
    expect(answered.stderr).toContain('can answer')
  })

  it('are answered once: the second answer is told so and ends with 1', async () => {
    const id = await ask('twice')
    expect((await asPerson('approvals', 'deny', id, '--reason', 'no')).code).toBe(0)
    const late = await asPerson('approvals', 'approve', id, '--json')
    expect(late.code).toBe(1)
    expect(late.json()).toMatchObject({ error: { code: 'approval-answered' } })
  })

  it('may need a second person', async () => {
    const asked = await gateway.run('tools', 'call', 'rec_plain_thing', '--no-wait', '--json')
    const id = idOf(asked.json().approval)
    expect((await asPerson('approvals', 'approve', id)).stdout).toContain('A second person must approve it')
    const again = await asPerson('approvals', 'approve', id, '--json')
    expect(again).toMatchObject({ code: 6 })
    expect(again.json()).toMatchObject({ error: { code: 'approval-forbidden' } })
  })

  it.each([
    [['deny', 'approval_x'], '--reason'],
    [['approve', 'approval_x', '--calls', '3'], '--for'],
    [['approve', 'approval_x', '--for', 'tool', '--calls', '3'], '--minutes'],
    [['approve', 'approval_x', '--for', 'shape', '--calls', '3', '--minutes', '3'], '--same'],
    [['approve', 'approval_x', '--for', 'all', '--calls', '3', '--minutes', '3'], '--for'],
    [['approve', 'approval_x', '--for', 'tool', '--calls', '0', '--minutes', '3'], '--calls'],
  ])('are not answered by halves: %j', async (words, flag) => {
    await expect(parse('approvals', ...words)).rejects.toMatchObject(wrongUsage(flag))
  })
})

describe('grants', () => {
  it('are given with an answer, for so many further calls, and then it asks again', async () => {
    const waiting = await askAndWait('granted')
    const words = ['--for', 'tool', '--calls', '2', '--minutes', '5']
    const approved = await asPerson('approvals', 'approve', waiting.id, ...words, '--json')
    const grant = String(approved.json().grant)
    expect(approved.stderr).toContain('Allows 2 more calls of rec_write_thing within 5 minutes, with any arguments.')
    expect(await waiting.ended).toBe(0)
    expect((await gateway.run(...write('further'))).code).toBe(0)
    expect((await gateway.run(...write('furthest'))).code).toBe(0)
    expect((await gateway.run(...write('too far', '--no-wait'))).code).toBe(7)
    const listed = await gateway.run('grants', 'list')
    expect(listed.stdout).toMatch(new RegExp(`${grant} +rec_write_thing +user:admin-token +2 of 2 +.*used up +admin`))
  })

  it('are added by a person, used only where their conditions hold, and revoked', async () => {
    const added = await asPerson(
      ...['grants', 'add', '--tools', 'rec_write_thing', '--principal', 'user:admin-token', '--calls', '10'],
      ...['--minutes', '5', '--arguments', '/path:={"glob":"ok-*"}', '--reason', 'Trying', '--json'],
    )
    expect(added.code).toBe(0)
    const grant = added.json()
    expect(grant).toMatchObject({ budget: 10, used: 0, arguments: { '/path': { glob: 'ok-*' } }, givenBy: 'admin' })
    expect((await gateway.run(...write('ok-1'))).code).toBe(0)
    expect((await gateway.run(...write('other', '--no-wait'))).code).toBe(7)
    const { items: [found] = [] } = (await gateway.run('grants', 'list', '--json')).json() as { items?: Fields[] }
    expect(found).toMatchObject({ id: grant.id, used: 1, lastUsedAt: expect.any(String) })
    expect((await gateway.run('grants', 'revoke', idOf(grant), '--json')).json()).toMatchObject({
      error: { code: 'person-needed' },
    })
    expect((await asPerson('grants', 'revoke', idOf(grant))).stdout).toContain('used 1 of 10')
    expect((await gateway.run(...write('ok-2', '--no-wait'))).code).toBe(7)
  })

  it('are for text by =, and for anything else by :=', async () => {
    const give = (...pair: string[]) =>
      asPerson(
        ...[
          'grants',
          'add',
          '--tools',
          'rec_write_thing',
          '--scope',
          'global',
          '--calls',
          '1',
          '--until',
          '1h',
          '--json',
        ],
        ...pair.flatMap((each) => ['--arguments', each]),
      )
    const given = await give('/number=7', '/count:=7')
    expect(given.json()).toMatchObject({ arguments: { '/number': '7', '/count': 7 }, scope: 'global' })
    expect((await asPerson('grants', 'revoke', idOf(given.json()))).code).toBe(0)
    expect((await give('number=7')).code).toBe(2)
    expect((await give('/number:=x')).code).toBe(2)
  })

  it.each([
    [['--principal', 'agent:a', '--calls', '1', '--minutes', '1'], '--tools'],
    [['--tools', 'x', '--calls', '1', '--minutes', '1'], '--principal'],
    [['--tools', 'x', '--principal', 'agent:a', '--minutes', '1'], '--calls'],
    [['--tools', 'x', '--principal', 'agent:a', '--calls', '1'], '--minutes'],
    [['--tools', 'x', '--principal', 'agent:a', '--calls', '1', '--until', 'soon'], '--until'],
  ])('are not given without their limits: %j', async (words, flag) => {
    await expect(parse('grants', 'add', ...words)).rejects.toMatchObject(wrongUsage(flag))
  })
})

describe('watching without a terminal', () => {
  it('prints a line for what waits, what is asked and what is answered, until it is ended', async () => {
    const before = await ask('watched before')
    const plain = startCli(['approvals', 'watch', '--data', gateway.data], { cwd: gateway.folder })
    const documents = startCli(['approvals', 'watch', '--json', '--data', gateway.data], { cwd: gateway.folder })
    children.push(plain, documents)
    const [lines, json] = [collect(plain, 'stdout'), collect(documents, 'stdout')]
    await until(() => (lines().includes(before) && json().includes(before) ? true : undefined))
    const id = await ask('watched')
    await until(() => (lines().includes(id) && json().includes(id) ? true : undefined))
    await asPerson('approvals', 'deny', id, '--reason', 'not now')
    await until(() => (/ended call_\w+ rec_write_thing: denied/.test(lines()) ? true : undefined))
    expect(lines()).toMatch(new RegExp(`requested ${id} write user:admin-token rec_write_thing: Write thing watched`))
    expect(lines()).toMatch(new RegExp(`answered ${id} denied by admin: not now`))
    await until(() => (json().includes('call-ended') ? true : undefined))
    const parsed = json()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(parsed.filter(({ approval }) => approval?.id === id)).toMatchObject([
      { event: 'approval-requested', approval: { state: 'waiting' } },
      { event: 'approval-answered', approval: { state: 'denied' } },
    ])
    for (const child of [plain, documents]) {
      const ended = once(child, 'close')
      child.kill('SIGINT')
      expect(await ended).toEqual([0, null])
    }
  })

  it('looks for a gateway that went away, and then ends with 4', async () => {
    await using other = await serveWith({}, { servers: {} })
    const child = startCli(['approvals', 'watch', '--retry', '1', '--data', other.data], { cwd: other.folder })
    const stderr = collect(child, 'stderr')
    const ended = once(child, 'close')
    await until(() => (stderr().includes('Listening') ? true : undefined))
    await other.stop()
    expect(await ended).toEqual([4, null])
    expect(stderr()).toContain('Lost the connection to the gateway; reconnecting.')
  })
})
