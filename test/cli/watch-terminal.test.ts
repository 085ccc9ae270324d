import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { collect, createFolder, recording, type Served, serveHere, serveWith, startCli, until } from './support.ts'
import { hasTmux, openTerminal, type Pane } from './terminal.ts'

const bin = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))
const password = 'correct horse battery'
const children: ChildProcess[] = []
let gateway: Served
let record: string
let definitions: string

beforeAll(async () => {
  const folder = await createFolder()
  record = join(folder.path, 'record.jsonl')
  definitions = join(folder.path, 'definitions.json')
  await writeFile(definitions, '{}')
  gateway = await serveHere(
    { servers: { rec: recording('--record', record, '--definitions', definitions) } },
    { SALLYPORT_ADMIN_PASSWORD: password },
  )
  await gateway.run('servers', 'reconnect', 'rec')
  return async () => {
    for (const child of children) child.kill('SIGKILL') // those that a failed test has left
    await gateway[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  }
})

/** A command in a real terminal, by the person `admin`. */
async function openCommand(...words: string[]): Promise<Pane> {
  const pane = await openTerminal([process.execPath, bin, ...words, '--as', 'admin', '--data', gateway.data].join(' '))
  await pane.shows(/Password of admin/)
  await pane.type(password)
  await pane.press('Enter')
  return pane
}

/** `approvals watch` for a person who has signed in. */
async function openPane(data: string): Promise<Pane> {
  const watch = [process.execPath, bin, 'approvals', 'watch', '--retry', '1', '--as', 'admin', '--data', data]
  const pane = await openTerminal(watch.join(' '))
  await pane.shows(/Password of admin/)
  await pane.type(password)
  await pane.press('Enter')
  return pane
}

/** A call that waits in a process of its own. */
function call(path: string, text: string) {
  const args = JSON.stringify({ path, text })
  const child = startCli(['tools', 'call', 'rec_write_thing', '--args', args, '--data', gateway.data])
  children.push(child)
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  return { stdout, stderr, ended: once(child, 'close').then(([code]: (number | null)[]) => code) }
}

async function timesRun(path: string): Promise<number> {
  const recorded = await readFile(record, 'utf8').catch(() => '')
  return recorded.split('\n').filter((line) => line.includes(`"path":"${path}"`)).length
}

describe('approvals watch in a terminal', () => {
  it('shows an approval as it comes with every character of its arguments, and a approves it', async ({ skip }) => {
    skip(!hasTmux, 'tmux is not installed')
    await using pane = await openPane(gateway.data)
    const waiting = call('one.txt', `zero\u200bwidth ${'long '.repeat(30)}end`)
    const screen = await pane.shows(/Write thing one\.txt[\s\S]*"text": "zero\\u\{200b\}width/)
    expect(screen).toContain('1 open')
    expect(screen).toMatch(/called by +user:admin-token/)
    expect(screen).toMatch(/why +no rule matches; write requires approval/)
    await pane.shows(/waiting for an answer; /) // more of it was read from the gateway: before that, nothing is approved
    await pane.press('Space')
    await pane.shows(/long end"/)
    await pane.press('a')
    await pane.shows(/In [45] s: Approve Write thing one\.txt, once/)
    expect(await timesRun('one.txt')).toBe(0)
    await pane.press('u')
    await pane.shows(/Undone: nothing was sent/)
    await pane.press('a')
    expect(await waiting.ended).toBe(0)
    expect(waiting.stdout()).toContain('"path":"one.txt"')
    expect(await timesRun('one.txt')).toBe(1)
    await pane.shows(/the call ended with ok/)
    await pane.press('q')
    const left = await pane.shows(/ended with 0, icanon/)
    expect(left).toContain('Approved: Write thing one.txt')
  })

  it('denies with d and a reason, which the caller gets, and gives a grant with g', async ({ skip }) => {
    skip(!hasTmux, 'tmux is not installed')
    await using pane = await openPane(gateway.data)
    const denied = call('two.txt', 'x')
    await pane.shows(/Write thing two\.txt/)
    const granted = call('three.txt', 'x')
    await pane.shows(/2 open, 1 in view/)
    await pane.press('d')
    await pane.type('quite the wrong file')
    await pane.shows(/Reason for the denial: quite the wrong file_/)
    await pane.press('Enter')
    await pane.shows(/In [45] s: Deny Write thing two\.txt: quite the wrong file/)
    await pane.press('n')
    await pane.shows(/Write thing three\.txt[\s\S]*waiting for an answer; /)
    await pane.press('g')
    await pane.shows(/Allow further calls/)
    await pane.press('t', '1', 'Enter', 'Enter')
    await pane.shows(/allow 1 more call of\s+rec_write_thing/)
    await pane.press('q')
    await pane.shows(/ended with 0, icanon/)
    expect(await denied.ended).toBe(6)
    expect(denied.stderr()).toContain('quite the wrong file')
    expect(await granted.ended).toBe(0)
    expect(await call('four.txt', 'x').ended).toBe(0)
    expect(await timesRun('two.txt')).toBe(0)
  })

  it('shows how a tool has changed before its call is approved', async ({ skip }) => {
    skip(!hasTmux, 'tmux is not installed')
    await writeFile(definitions, JSON.stringify({ plain_thing: { description: 'Sends it away as well' } }))
    await gateway.run('tools', 'call', 'rec_announce_lists')
    await until(async () => ((await gateway.run('tools', 'pins')).stdout.includes('changed') ? true : undefined))
    await using pane = await openPane(gateway.data)
    const waiting = startCli([
      'tools',
      'call',
      'rec_plain_thing',
      '--args',
      '{"path":"five.txt"}',
      '--data',
      gateway.data,
    ])
    children.push(waiting)
    const screen = await pane.shows(/\+ Sends it away as well/)
    expect(screen).toContain('changes in the definition of the tool')
    expect(screen).toContain('- The tool plain_thing of a fixture')
  })

  it('says that the gateway is away, ends with 4, and leaves the terminal as it was', async ({ skip }) => {
    skip(!hasTmux, 'tmux is not installed')
    await using other = await serveWith({ SALLYPORT_ADMIN_PASSWORD: password }, { servers: {} })
    await using pane = await openPane(other.data)
    await pane.shows(/0 open$/m)
    await other.stop()
    await pane.shows(/connection lost/)
    await pane.shows(/ended with 4, icanon/)
  })
})

describe.runIf(hasTmux)('Ctrl+C at an approval', () => {
  it.each([
    ['servers remove rec', /Remove rec\?/],
    ['secrets set TOKEN', /TOKEN/],
    ['users list --as admin', /Password of admin/],
  ] as const)('ends `sallyport %s` with 130 and a sentence', async (words, approval) => {
    await using pane = await openTerminal(`${process.execPath} ${bin} ${words} --data ${gateway.data}`)
    await pane.shows(approval)
    await pane.press('C-c')
    const screen = await pane.shows(/ended with 130/)
    expect(screen).toContain('Cancelled; nothing was changed.')
    expect(screen).not.toMatch(/\.js:\d/)
  })
})

describe('approvals approve in a terminal', () => {
  it('asks only when the whole approval was shown, page by page', async ({ skip }) => {
    skip(!hasTmux, 'tmux is not installed')
    const waiting = call('paged.txt', `first ${'x'.repeat(4000)} last`)
    const id = await until(() => /approvals\/(approval_\w+)/.exec(waiting.stderr())?.[1])
    await using left = await openCommand('approvals', 'approve', id)
    await left.shows(/Lines 1 to 20 of \d+\. Show more\?/)
    await left.press('n')
    await left.shows(/Not approved: the approval was not shown completely\.[\s\S]*ended with 1/)
    await using pane = await openCommand('approvals', 'approve', id)
    for (let to = 20; to < 60; to += 20) {
      const screen = await pane.shows(new RegExp(`to ${to} of \\d+\\. Show more\\?`))
      expect(screen).not.toContain('Approve this call?')
      await pane.press('y')
    }
    for (let page = 0; page < 10; page++) {
      const screen = await pane.shows(/Show more\?\s*\n[^\n]*● Yes|Approve this call\?/)
      if (screen.includes('Approve this call?')) break
      await pane.press('y')
    }
    await pane.shows(/Approve this call\?/)
    await pane.press('y')
    expect(await waiting.ended).toBe(0)
  })
})
