import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { findId, shorteningIds } from '../../src/cli/client/short-id.ts'
import { type Ended, type Fields, recording, runCli, type Served, serveHere } from './support.ts'

const password = 'correct horse battery'
let gateway: Served

beforeAll(async () => {
  gateway = await serveHere({ servers: { rec: recording() } }, { SALLYPORT_ADMIN_PASSWORD: password })
  await gateway.run('servers', 'reconnect', 'rec')
  return () => gateway[Symbol.asyncDispose]()
})

function asPerson(...words: string[]): Promise<Ended> {
  const all = [...words, '--as', 'admin', '--password-stdin', '--data', gateway.data]
  return runCli(all, { cwd: gateway.folder, input: `${password}\n` })
}

async function ask(path: string): Promise<{ id: string; call: string }> {
  const ended = await gateway.run('tools', 'call', 'rec_write_thing', '--arg', `path=${path}`, '--no-wait', '--json')
  expect(ended.code).toBe(7)
  const { id, call } = Object(ended.json().approval)
  return { id: String(id), call: String(call) }
}

const withoutEnd = (id: string) => id.slice(0, -6)

describe('the beginning of an id', () => {
  it('is enough for approvals, calls, grants, tokens and entries', async () => {
    const { id, call } = await ask('short')
    expect((await gateway.run('approvals', 'show', withoutEnd(id), '--json')).json()).toMatchObject({ id })
    expect((await gateway.run('calls', 'show', withoutEnd(call), '--json')).json()).toMatchObject({ id: call })
    const denied = await asPerson('approvals', 'deny', withoutEnd(id), '--reason', 'not now', '--json')
    expect(denied.json()).toMatchObject({ id, state: 'denied' })
    const { entries } = (await gateway.run('audit', 'show', withoutEnd(call), '--json')).json()
    const [entry] = entries as Fields[]
    const short = `${withoutEnd(String(entry?.instance))}:${entry?.sequence}`
    expect((await gateway.run('audit', 'show', short, '--json')).json()).toMatchObject({ entries: [entry] })
    const about = (await gateway.run('audit', 'list', '--call', withoutEnd(call), '--json')).json()
    expect(about.items).not.toEqual([])
    const granted = ['--tools', 'rec_write_thing', '--principal', 'agent:x', '--calls', '1', '--minutes', '5']
    const grant = (await asPerson('grants', 'add', ...granted, '--json')).json()
    const revoked = await asPerson('grants', 'revoke', withoutEnd(String(grant.id)), '--json')
    expect(revoked.json()).toMatchObject({ id: grant.id })
    const token = (await gateway.run('tokens', 'create', '--agent', 'x', '--json')).json()
    const ended = await gateway.run('tokens', 'revoke', withoutEnd(String(token.id)), '--json')
    expect(ended.json()).toMatchObject({ id: token.id })
  })

  it('answers nothing where several approvals begin with it, and names them', async () => {
    const [one, other] = [await ask('one'), await ask('other')]
    const answered = await asPerson('approvals', 'deny', 'approval_1', '--reason', 'no', '--json')
    expect(answered).toMatchObject({ code: 2 })
    const { error } = answered.json()
    expect(error).toMatchObject({ code: 'request-invalid' })
    for (const { id } of [one, other]) expect(JSON.stringify(error)).toContain(id)
    expect((await gateway.run('approvals', 'show', one.id, '--json')).json()).toMatchObject({ state: 'waiting' })
  })

  it('reads older pages until the id is found, and stops behind it', async () => {
    const ids = ['call_03bbbb', 'call_03aaaa', 'call_02aaaa', 'call_01aaaa']
    const asked: (string | undefined)[] = []
    const list = async (cursor: string | undefined) => {
      asked.push(cursor)
      const at = Number(cursor ?? 0)
      return { items: [{ id: ids[at] ?? '' }], next: at < 3 ? String(at + 1) : null }
    }
    expect(await findId('call_02', { noun: 'calls', kind: 'call', list })).toBe('call_02aaaa')
    expect(asked).toEqual([undefined, '1', '2', '3'])
    await expect(findId('call_03', { noun: 'calls', kind: 'call', list })).rejects.toMatchObject({
      message: expect.stringContaining('call_03bbbb, call_03aaaa'),
    })
    expect(await findId('call_09', { noun: 'calls', kind: 'call', list })).toBe('call_09')
  })

  it('is shown in tables on a terminal only, as long as it must be', () => {
    const ids = ['call_01k0000000aaaaa00000', 'call_01k0000000aaaab00000']
    expect(ids.map(shorteningIds(ids, 80))).toEqual(['call_01k0000000aaaaa', 'call_01k0000000aaaab'])
    expect(ids.map(shorteningIds(ids, undefined))).toEqual(ids)
  })
})

describe('times of a call', () => {
  it('tell the wait for approval and the work of the server apart', async () => {
    const { id, call } = await ask('waited')
    await pause(1500)
    expect(await asPerson('approvals', 'approve', id)).toMatchObject({ code: 0 })
    const words = ['tools', 'call', 'rec_write_thing', '--arg', 'path=waited']
    expect(await gateway.run(...words)).toMatchObject({ code: 0 })
    const shown = (await gateway.run('calls', 'show', call, '--json')).json()
    expect(shown).toMatchObject({ state: 'ok' })
    expect(Number(shown.waitedMs)).toBeGreaterThanOrEqual(1500)
    expect(Number(shown.durationMs)).toBeGreaterThanOrEqual(Number(shown.waitedMs))
    const text = (await gateway.run('calls', 'show', call)).stdout
    expect(text).toMatch(/^waited +\d+\.\d s for approval$/m)
    expect(text).toMatch(/^worked +\d+ ms at the server$/m)
    expect((await gateway.run('calls', 'list')).stdout).toMatch(/^ID .*WAITED +WORKED$/m)
  })

  it('have no wait where nobody was asked', async () => {
    expect(await gateway.run('tools', 'call', 'rec_read_thing')).toMatchObject({ code: 0 })
    const [newest] = (await gateway.run('calls', 'list', '--limit', '1', '--json')).json().items as Fields[]
    expect(newest).toMatchObject({ tool: 'rec_read_thing', state: 'ok' })
    expect(newest).not.toHaveProperty('waitedMs')
  })
})

describe('standard input', () => {
  it('has the password in its first line and the value in the rest', async () => {
    const words = ['secrets', 'set', 'KEY', '--as', 'admin', '--password-stdin', '--json', '--data', gateway.data]
    const stored = await runCli(words, { input: `${password}\nfirst line\nsecond line\n` })
    expect(stored).toMatchObject({ code: 0 })
    expect(stored.json()).toMatchObject({ name: 'KEY', updatedBy: 'user:admin' })
    const empty = await runCli(words, { input: `${password}\n` })
    expect(empty).toMatchObject({ code: 2 })
    expect(empty.json()).toMatchObject({ error: { message: 'Value of KEY: standard input contains no value' } })
  })
})
