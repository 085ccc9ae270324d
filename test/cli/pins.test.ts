import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { Pin, PinDetail } from '../../src/contract/pin.ts'
import { createFolder, recording, type Served, serveHere, until } from './support.ts'

type Listed = { items: { name: string; state: string; tool: string; id: string; live: { hash: string } }[] }
const Answer = PinDetail.partial().extend({
  items: z.array(Pin).optional(),
  error: z.unknown().optional(),
  accepted: z.unknown().optional(),
})

async function pinsOf(gateway: Served, ...args: string[]): Promise<Listed['items']> {
  const listed = await gateway.run('tools', 'pins', ...args, '--json')
  const { items }: Listed = JSON.parse(listed.stdout)
  return items
}

async function adminToken({ data }: Served): Promise<string> {
  return (await readFile(join(data, 'admin-token'), 'utf8')).trim()
}

it('shows, accepts and blocks what a server changed, and upgrades it with one command', async () => {
  await using folder = await createFolder()
  const definitions = join(folder.path, 'definitions.json')
  await using gateway = await serveHere({
    servers: { files: recording('--definitions', definitions) },
    rules: [{ action: 'allow' }],
  })
  await until(async () => ((await pinsOf(gateway)).length > 0 ? true : undefined))
  const restate = async (changes: object) => {
    await writeFile(definitions, JSON.stringify(changes))
    expect((await gateway.run('tools', 'call', 'files_announce_lists')).code).toBe(0)
  }
  await restate({
    read_thing: { description: 'Reads\u202e it' },
    echo: { description: 'Says it again' },
    big: { description: 'Makes something big' },
  })
  await until(async () => ((await pinsOf(gateway, '--open')).length === 3 ? true : undefined))

  const open = await gateway.run('tools', 'pins', 'files', '--open')
  expect(open.stdout).toMatch(/files\/read_thing +global +suspicious/)
  expect(open.stdout).toMatch(/files\/echo +global +changed +baseline/)
  expect(open.stderr).toContain('sallyport tools diff')

  const difference = await gateway.run('tools', 'diff', 'files_read_thing')
  expect(difference.stdout).toContain(
    'files/read_thing: suspicious; hidden (its text contains the invisible character U+202E)',
  )
  expect(difference.stdout).toContain('- The tool read_thing of a fixture')
  expect(difference.stdout).toContain('+ Reads\\u{202e} it')

  expect((await gateway.run('tools', 'call', 'files_echo', '--arg', 'text=a', '--no-wait')).code).toBe(7)
  const unsure = await gateway.run('tools', 'accept', 'files_echo')
  expect(unsure.code).toBe(2)
  expect(unsure.stderr).toContain('--yes')
  const accepted = await gateway.run('tools', 'accept', 'files/echo', '--yes', '--json')
  expect(accepted.json()).toMatchObject({ state: 'accepted', accepted: { by: 'user:admin-token' } })
  expect((await gateway.run('tools', 'call', 'files_echo', '--arg', 'text=a')).stdout).toContain('a')

  const upgraded = await gateway.run('servers', 'upgrade', 'files', '--yes', '--json')
  expect(upgraded.json()).toEqual({ accepted: 1, left: ['files/read_thing'] })
  expect(upgraded.stderr).toContain('+ Makes something big')
  expect((await gateway.run('servers', 'upgrade', 'files', '--yes')).stdout).toContain('Nothing to accept')

  const blocked = await gateway.run('tools', 'block', 'files_big', '--yes')
  expect(blocked.stdout).toContain('files/big: blocked')
  expect((await gateway.run('tools', 'call', 'files_big')).code).toBe(1)
  const unknown = await gateway.run('tools', 'diff', 'files_bik')
  expect(unknown.code).toBe(1)
  expect(unknown.stderr).toContain('Did you mean files_big?')
  const record = await gateway.run('audit', 'list', '--json')
  for (const change of ['baseline', 'differs', 'definitions-accepted', 'definitions-blocked']) {
    expect(record.stdout).toContain(`"${change}"`)
  }
})

it('answers on REST: only what was looked at is accepted, and no agent sees or decides anything', async () => {
  await using folder = await createFolder()
  const definitions = join(folder.path, 'definitions.json')
  await using gateway = await serveHere({ servers: { files: recording('--definitions', definitions) } })
  const token = await adminToken(gateway)
  await until(async () => ((await pinsOf(gateway)).length > 0 ? true : undefined))
  const ask = async (path: string, body?: object, as = token) => {
    const answer = await gateway.fetch(`/api/pins${path}`, { method: body ? 'POST' : 'GET', body, token: as })
    return { status: answer.status, body: Answer.parse(await answer.json()) }
  }
  const list = await ask('?server=files&state=accepted')
  const pin = list.body.items?.find(({ name }) => name === 'read_thing')
  if (!pin?.live) throw new Error('There is no such pin')
  const { id } = pin
  expect(pin).toMatchObject({ tool: 'files_read_thing', kind: 'tool', scope: 'global', live: { listed: true } })
  await writeFile(definitions, JSON.stringify({ read_thing: { title: 'Other' } }))
  await gateway.run('tools', 'call', 'files_announce_lists')
  const changed = await until(async () => {
    const { body } = await ask(`/${id}`)
    return body.state === 'changed' ? body : undefined
  })
  const hash = String(changed.live?.hash)
  expect(changed.difference).toBe('title (added)\n  + Other')
  expect(changed.acceptedDefinition).not.toHaveProperty('title')

  const stale = await ask(`/${id}/accept`, { hash: pin.live.hash })
  expect(stale).toMatchObject({ status: 409, body: { error: { code: 'pin-changed' } } })
  const many = await ask('/accept', { accept: [{ id: id, hash: 'other' }] })
  expect(many.status).toBe(409)
  expect((await ask('/pin_none/accept', { hash: 'x' })).status).toBe(404)
  expect((await ask(`/${id}/accept`, {})).status).toBe(400)

  const made = await gateway.run('tokens', 'create', '--agent', 'curious', '--json')
  const agent = String(made.json().token)
  for (const [path, body] of [
    ['', undefined],
    [`/${id}`, undefined],
    [`/${id}/accept`, { hash }],
    [`/${id}/block`, { hash }],
    ['/accept', { accept: [{ id: id, hash }] }],
  ] as const) {
    expect(await ask(path, body, agent)).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
  }
  const accepted = await ask('/accept', { accept: [{ id: id, hash }] })
  expect(accepted).toEqual({ status: 200, body: { accepted: 1 } })
  expect((await ask(`/${id}`)).body).toMatchObject({ state: 'accepted', difference: '' })
})
