import { beforeAll, describe, expect, it } from 'vitest'
import {
  collect,
  createFolder,
  type Ended,
  recording,
  runCli,
  type Served,
  serveHere,
  startCli,
  until,
} from './support.ts'

const password = 'correct horse battery'
let gateway: Served

/** The link that `serve` prints. */
function linkIn(text: string): URL | undefined {
  const found = /^ {2}(http\S+\/setup\?code=\S+)$/m.exec(text)?.[1]
  return found === undefined ? undefined : new URL(found)
}

beforeAll(async () => {
  const serving = await serveHere({ servers: { files: recording() } })
  gateway = serving
  const link = new URL(serving.setupUrl() ?? '')
  const fields = { code: link.searchParams.get('code') ?? '', name: 'ada', password }
  const made = await fetch(new URL('/setup', gateway.url), { method: 'POST', body: new URLSearchParams(fields) })
  expect(made.status).toBe(200)
  return () => gateway[Symbol.asyncDispose]()
})

/** A command of the gateway's folder, with lines on standard input. */
function run(words: readonly string[], ...lines: string[]): Promise<Ended> {
  return runCli([...words, '--data', gateway.data], { cwd: gateway.folder, input: lines.map((l) => `${l}\n`).join('') })
}
const as = (name: string) => ['--as', name, '--password-stdin']

describe('a person at the terminal', () => {
  it('signs in for one command, makes users, and leaves nothing behind', async () => {
    const added = await run(
      ['users', 'add', 'kim', '--role', 'member', '--json', ...as('ada')],
      password,
      'kims own password',
    )
    expect(added).toMatchObject({ code: 0 })
    expect(added.json()).toMatchObject({ name: 'kim', role: 'member' })
    const listed = await run(['users', 'list'])
    expect(listed.stdout).toMatch(/ada\s+administrator/)
    expect(listed.stdout).toMatch(/kim\s+member/)
    const { items } = (await run(['audit', 'list', '--json'])).json() as {
      items: { subject: string; body: { action: string } }[]
    }
    const actions = items.filter(({ subject }) => subject === 'user:ada').map(({ body }) => body.action)
    expect(actions.slice(0, 2)).toEqual(['signed-out', 'signed-in'])
    expect(added.stdout + added.stderr).not.toContain(password)
  })

  it('changes, disables and removes users, and sets passwords', async () => {
    await run(['users', 'add', 'lea', ...as('ada')], password, 'leas own password')
    const changed = await run(
      ['users', 'change', 'lea', '--role', 'auditor', '--group', 'ops', '--json', ...as('ada')],
      password,
    )
    expect(changed.json()).toMatchObject({ role: 'auditor', groups: ['ops'] })
    const own = await run(
      ['users', 'password', 'lea', ...as('lea')],
      'leas own password',
      'leas own password',
      'a better password',
    )
    expect(own.code).toBe(0)
    expect((await run(['users', 'list', ...as('lea')], 'leas own password')).code).toBe(3)
    expect((await run(['users', 'list', ...as('lea')], 'a better password')).code).toBe(0)
    await run(['users', 'change', 'lea', '--disable', ...as('ada')], password)
    expect((await run(['users', 'list', ...as('lea')], 'a better password')).code).toBe(3)
    expect((await run(['users', 'remove', 'lea', '--yes', ...as('ada')], password)).stdout).toContain('Removed lea')
  })

  it('is needed to make users: the token file is told so, with exit code 3', async () => {
    const refused = await run(['users', 'add', 'eve', '--json'], 'long enough password')
    expect(refused.code).toBe(3)
    expect(refused.json()).toMatchObject({ error: { code: 'person-needed', hint: expect.stringContaining('--as') } })
    expect((await run(['users', 'remove', 'ada', '--yes'])).code).toBe(3)
  })

  it('must be somebody who can be asked, or give the password on standard input', async () => {
    const refused = await run(['users', 'list', '--as', 'ada'])
    expect(refused.code).toBe(3)
    expect(refused.stderr).toContain('--password-stdin')
    expect((await run(['users', 'list', ...as('ada')])).code).toBe(2)
    expect((await run(['users', 'list', ...as('ada')], 'wrong wrong wrong')).code).toBe(3)
  })
})

describe('agents and sessions', () => {
  it('are made for and by their owners', async () => {
    await run(['users', 'add', 'bob', ...as('ada')], password, 'bobs own password')
    const bob = (...words: string[]) => run([...words, '--json', ...as('bob')], 'bobs own password')
    expect((await bob('agents', 'add', 'reviewer', '--description', 'Looks')).json()).toMatchObject({ owner: 'bob' })
    const { token } = (await bob('tokens', 'create', '--agent', 'reviewer')).json()
    const me = await gateway.fetch('/api/me', { token: String(token) })
    expect(await me.json()).toMatchObject({ kind: 'agent', name: 'reviewer', owner: 'bob' })
    const session = (
      await bob('sessions', 'create', '--agent', 'reviewer', '--without', 'files', '--expires', '2h')
    ).json()
    expect(session).toMatchObject({ owner: 'bob', servers: { files: { enabled: false } }, token: expect.any(String) })
    const name = String(session.name)
    expect((await bob('sessions', 'update', name, '--servers', '{}')).json()).toMatchObject({ servers: {} })
    const second = (await bob('tokens', 'create', '--session', name)).json()
    expect((await gateway.fetch('/api/me', { token: String(second.token) })).status).toBe(200)
    expect((await run(['sessions', 'list'])).stdout).toContain(name)
    expect((await bob('sessions', 'end', name)).json()).toMatchObject({ state: 'ended' })
    for (const text of [session.token, second.token])
      expect((await gateway.fetch('/api/me', { token: String(text) })).status).toBe(401)
    expect((await run(['sessions', 'list'])).stdout).not.toContain(name)
    expect((await run(['sessions', 'list', '--all'])).stdout).toContain(name)
    expect((await run(['agents', 'change', 'reviewer', '--owner', 'ada'])).stdout).toContain('belongs to ada')
    expect((await bob('agents', 'list')).json()).toMatchObject({ items: [] })
    expect((await run(['agents', 'remove', 'reviewer', '--yes'])).code).toBe(0)
    expect((await gateway.fetch('/api/me', { token: String(token) })).status).toBe(401)
  })
})

describe('the first administrator', () => {
  it('gets no link once there is one, and a new one with every start until then', async () => {
    await using folder = await createFolder()
    const start = async (env: NodeJS.ProcessEnv = {}) => {
      const child = startCli(['serve', '--port', '0', '--data', folder.path], { cwd: folder.path, env })
      const stderr = collect(child, 'stderr')
      await until(() => (stderr().includes('tokens create') ? true : undefined))
      // What follows comes in the same breath.
      await until(async () => ((await runCli(['status', '--data', folder.path])).code === 4 ? undefined : true))
      const ended = new Promise((resolve) => child.on('exit', resolve))
      child.kill('SIGTERM')
      await ended
      return stderr()
    }
    const [first, second] = [linkIn(await start()), linkIn(await start())]
    expect(first?.searchParams.get('code')).toMatch(/^[\w-]{43}$/)
    expect(second?.searchParams.get('code')).not.toBe(first?.searchParams.get('code'))
    expect(linkIn(await start({ SALLYPORT_ADMIN_PASSWORD: password }))).toBeUndefined()
    expect(linkIn(await start())).toBeUndefined()
  })

  it('refuses a start with a password that is too short', async () => {
    await using folder = await createFolder()
    const env = { SALLYPORT_ADMIN_PASSWORD: 'short' }
    const ended = await runCli(['serve', '--port', '0', '--data', folder.path], { cwd: folder.path, env })
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('SALLYPORT_ADMIN_PASSWORD')
    expect(ended.stderr).toContain('12 characters')
  })
})
