import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { GatewayError } from '../../src/contract/errors.ts'
import { secret } from '../../src/lib/secret.ts'
import { deriveKey, loadKeys } from '../../src/storage/key.ts'
import { changeFile, databases, observe, placeOn, temporaryFolder } from '../storage/support.ts'
import { administrator, agent, alice, auditor, bearer, openSecrets, written } from './support.ts'

const value = 'tok-0123456789abcdef'
const key = Buffer.alloc(32, 7)

async function failure(attempt: () => unknown): Promise<GatewayError> {
  try {
    await attempt()
  } catch (error) {
    return error as GatewayError
  }
  throw new Error('It did not fail')
}

describe('the key', () => {
  it.each([
    ['base64', key.toString('base64')],
    ['base64url', key.toString('base64url')],
    ['hexadecimal', key.toString('hex')],
  ])('may come by the environment as %s', async (_, text) => {
    const { keys } = await loadKeys({ folder: temporaryFolder(), environment: { SALLYPORT_KEY: text } })
    expect(keys).toEqual([key])
  })

  it.each(['short', key.toString('base64').slice(4), `${key.toString('hex')}00`])(
    'of another form is refused without being repeated: %s',
    async (text) => {
      const error = await failure(() => loadKeys({ folder: temporaryFolder(), environment: { SALLYPORT_KEY: text } }))
      expect(error).toMatchObject({ code: 'key-invalid' })
      expect(error.message).toMatch(/openssl rand -base64 32/)
      expect(error.message).not.toContain(text)
    },
  )

  it('is made once, for its owner only, and two that start at once use the same', async () => {
    const folder = temporaryFolder()
    const rings = await Promise.all([1, 2, 3].map(() => loadKeys({ folder, environment: {} })))
    expect(new Set(rings.map(({ keys }) => keys[0]?.toString('hex'))).size).toBe(1)
    expect(statSync(join(folder, 'key')).mode & 0o777).toBe(0o600)
  })

  it('may stand in a file of its own, which must be there', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'elsewhere')
    const environment = { SALLYPORT_KEY_FILE: file }
    expect(await failure(() => loadKeys({ folder, environment }))).toMatchObject({ code: 'key-invalid' })
    writeFileSync(file, `${key.toString('hex')}\n`)
    expect((await loadKeys({ folder, environment })).keys).toEqual([key])
  })

  it('is another for every purpose', () => {
    expect(deriveKey(key, 'secrets')).not.toEqual(deriveKey(key, 'audit'))
    expect(deriveKey(key, 'audit')).toEqual(deriveKey(key, 'audit'))
  })
})

it('a secret shows itself nowhere by accident', () => {
  const hidden = secret(value)
  const shown = [
    String(hidden),
    JSON.stringify({ hidden }),
    inspect({ hidden }, { depth: 9, showHidden: true }),
    `${hidden}`,
  ]
  expect(shown.join('\n')).not.toContain(value)
  expect(hidden.reveal()).toBe(value)
})

describe.each(databases)('secrets on %s', (kind) => {
  it('are nowhere in the database as they are, and are there after a new start', async () => {
    const place = await placeOn(kind)
    const first = await openSecrets(place)
    await first.secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    await first.close()
    const rows = await observe(place).all('select * from secrets')
    expect(JSON.stringify(rows)).not.toContain(value)
    const entries = await observe(place).all("select body from audit where subject = 'secret:TOKEN'")
    expect(JSON.stringify(entries)).toMatch(/secret-added/)
    expect(JSON.stringify(entries)).not.toContain(value)
    const again = await openSecrets(place)
    expect(again.secrets.resolve('github', written('global', bearer))).toMatchObject({
      headers: { Authorization: `Bearer ${value}` },
    })
  })

  it('refuse the start under another key, with a sentence that says so', async () => {
    const place = await placeOn(kind)
    const first = await openSecrets(place)
    await first.secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    await first.close()
    const environment = { SALLYPORT_KEY: key.toString('base64') }
    const error = await failure(() => openSecrets(place, { environment }))
    expect(error).toMatchObject({ code: 'key-wrong' })
    expect(error.message).toBe('`SALLYPORT_KEY` is not the key that encrypts the secrets in this database')
  })

  it('are encrypted under a new key by rotating, and the old one is forgotten', async () => {
    const place = await placeOn(kind)
    const file = join(place.folder, 'key')
    const stage = await openSecrets(place)
    await stage.secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    const before = readFileSync(file, 'utf8')
    expect(await stage.secrets.rotateKey(administrator)).toEqual({ keyVersion: 2, secrets: 1 })
    const after = readFileSync(file, 'utf8')
    expect(after).not.toContain(before.trim())
    expect(after.trim().split('\n')).toHaveLength(1)
    expect(await observe(place).all('select key_version from secrets')).toEqual([{ key_version: 2 }])
    await stage.secrets.set(administrator, { scope: 'global', name: 'OTHER', value: `${value}2` })
    await stage.close()
    const again = await openSecrets(place)
    const definition = written('global', { headers: { Authorization: '${TOKEN} ${OTHER}' } })
    expect(again.secrets.resolve('github', definition)).toMatchObject({
      headers: { Authorization: `${value} ${value}2` },
    })
  })

  it('turn to a new key from the environment when the one before is named as well', async () => {
    const place = await placeOn(kind)
    const old = { SALLYPORT_KEY: key.toString('base64') }
    const first = await openSecrets(place, { environment: old })
    await first.secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    expect(await failure(() => first.secrets.rotateKey(administrator))).toMatchObject({ code: 'request-invalid' })
    await first.close()
    const fresh = { SALLYPORT_KEY: Buffer.alloc(32, 9).toString('base64') }
    expect(await failure(() => openSecrets(place, { environment: fresh }))).toMatchObject({ code: 'key-wrong' })
    const both = { ...fresh, SALLYPORT_KEY_PREVIOUS: old.SALLYPORT_KEY }
    await (await openSecrets(place, { environment: both })).close()
    const last = await openSecrets(place, { environment: fresh })
    expect(last.secrets.resolve('github', written('global', bearer))).toMatchObject({
      headers: { Authorization: `Bearer ${value}` },
    })
  })

  it('connect anew exactly the servers that asked for what changed', async () => {
    const { secrets, reconnected } = await openSecrets(await placeOn(kind))
    await failure(() => secrets.resolve('github', written('global', bearer)))
    await failure(() => secrets.resolve('github@user:alice', written('user:alice', bearer)))
    await secrets.set(alice, { scope: 'user:alice', name: 'TOKEN', value })
    expect(reconnected).toEqual(['github@user:alice'])
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    expect(reconnected).toEqual(['github@user:alice', 'github'])
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    await secrets.set(administrator, { scope: 'global', name: 'UNUSED', value })
    expect(reconnected).toHaveLength(2)
    await secrets.remove(alice, 'user:alice', 'TOKEN')
    expect(reconnected.at(-1)).toBe('github@user:alice')
  })

  it('keep their bindings when only the value is replaced', async () => {
    const { secrets } = await openSecrets(await placeOn(kind))
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value, hosts: ['api.github.com'] })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value: `${value}2` })
    expect(secrets.list(administrator)).toMatchObject([{ name: 'TOKEN', hosts: ['api.github.com'], masked: true }])
    const freed = await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value, hosts: [] })
    expect(freed.hosts).toEqual([])
  })
})

it('gateways on one PostgreSQL share secrets: what one is given, changes or forgets, the others know at once', async () => {
  const environment = { SALLYPORT_KEY: key.toString('base64') }
  const place = await placeOn('PostgreSQL')
  const one = await openSecrets(place, { environment })
  const two = await openSecrets({ ...place, folder: temporaryFolder() }, { environment })
  const seen = async () => two.secrets.resolve('github', written('global', bearer))
  expect(await failure(seen)).toMatchObject({ code: 'variable-missing' })
  await one.secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
  expect(await seen()).toMatchObject({ headers: { Authorization: `Bearer ${value}` } })
  expect(two.reconnected).toEqual(['github'])
  await one.secrets.remove(administrator, 'global', 'TOKEN')
  expect(await failure(seen)).toMatchObject({ code: 'variable-missing' })
  const stranger = { SALLYPORT_KEY: Buffer.alloc(32, 8).toString('base64') }
  const third = { ...place, folder: temporaryFolder() }
  expect(await failure(() => openSecrets(third, { environment: stranger }))).toMatchObject({ code: 'key-wrong' })
})

it('a ciphertext that was moved to another row, scope or name does not open', async () => {
  const folder = temporaryFolder()
  const first = await openSecrets({ folder })
  await first.secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
  await first.secrets.set(alice, { scope: 'user:alice', name: 'MINE', value: 'alices-own-value' })
  await first.close()
  changeFile(
    folder,
    "update secrets set ciphertext = (select ciphertext from secrets where name = 'TOKEN') where name = 'MINE'",
  )
  const second = await openSecrets({ folder })
  const mine = written('user:alice', { headers: { Authorization: '${MINE}' } })
  expect(await failure(() => second.secrets.resolve('x', mine))).toMatchObject({ code: 'variable-missing' })
  await second.close()
  changeFile(
    folder,
    "delete from secrets where name = 'MINE'",
    "update secrets set scope = 'user:alice', name = 'MINE'",
  )
  const third = await openSecrets({ folder })
  expect(await failure(() => third.secrets.resolve('x', mine))).toMatchObject({ code: 'variable-missing' })
})

describe('${NAME}', () => {
  it('means the narrowest secret that the text may use, then a listed variable', async () => {
    const options = { environment: { TOKEN: 'from-environment' }, listed: ['TOKEN'] }
    const { secrets } = await openSecrets({ folder: temporaryFolder() }, options)
    const seen = () => secrets.resolve('x', written('agent:reviewer', bearer))
    expect(seen()).toMatchObject({ headers: { Authorization: 'Bearer from-environment' } })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value: 'from-global' })
    expect(seen()).toMatchObject({ headers: { Authorization: 'Bearer from-global' } })
    await secrets.set(administrator, { scope: 'agent:reviewer', name: 'TOKEN', value: 'from-agent' })
    expect(seen()).toMatchObject({ headers: { Authorization: 'Bearer from-agent' } })
  })

  it.each([
    ['global', ['global']],
    ['project:shop', ['project:shop']],
    ['agent:reviewer', ['global', 'agent:reviewer']],
    ['user:alice', ['user:alice']],
    ['user:bob', []],
    ['session:work', ['user:alice', 'session:work']],
    ['session:other', []],
  ] as const)('in a text of %s uses secrets of %j and no others', async (author, allowed) => {
    const scopes = ['global', 'project:shop', 'agent:reviewer', 'user:alice', 'session:work'] as const
    const { secrets } = await openSecrets({ folder: temporaryFolder() })
    for (const scope of scopes) {
      await secrets.set(administrator, { scope, name: 'TOKEN', value })
      const attempt = async () => secrets.resolve('x', written(author, bearer))
      const outcome = await attempt().then(
        (definition) => ('headers' in definition ? definition.headers.Authorization : undefined),
        (error: GatewayError) => error.code,
      )
      expect(outcome).toBe(allowed.some((each) => each === scope) ? `Bearer ${value}` : 'variable-missing')
      await secrets.remove(administrator, scope, 'TOKEN')
    }
  })

  it('goes only to the hosts and servers that the secret is bound to', async () => {
    const { secrets } = await openSecrets({ folder: temporaryFolder() })
    const to = (url: string, name?: string) => secrets.resolve('x', written('global', { ...bearer, url }, name))
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value, hosts: ['api.github.com'] })
    expect(to('https://API.github.com/mcp')).toBeDefined()
    expect((await failure(() => to('https://api.github.com@evil.example/'))).message).toContain('user name or password')
    for (const url of ['https://evil.example/', 'https://api.github.com.evil.example/']) {
      const error = await failure(() => to(url))
      expect(error.message).toBe(
        'These secrets must not be sent to github: TOKEN (it may only be sent to api.github.com)',
      )
    }
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value, hosts: ['api.github.com:8443'] })
    expect(to('https://api.github.com:8443/')).toBeDefined()
    expect(await failure(() => to('https://api.github.com/'))).toMatchObject({ code: 'variable-missing' })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value, hosts: [], servers: ['github'] })
    expect(to('https://anywhere.example/')).toBeDefined()
    expect(await failure(() => to('https://anywhere.example/', 'other'))).toMatchObject({ code: 'variable-missing' })
  })

  it('bound to a host goes to no program, unless the program is named as well', async () => {
    const { secrets } = await openSecrets({ folder: temporaryFolder() })
    const program = written('global', { transport: 'stdio', command: 'x', env: { TOKEN: '${TOKEN}' } })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value, hosts: ['api.github.com'] })
    expect(await failure(() => secrets.resolve('x', program))).toMatchObject({ code: 'variable-missing' })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value, servers: ['github'] })
    expect(secrets.resolve('x', program)).toMatchObject({ env: { TOKEN: value } })
  })

  it('stands in arguments only where that is permitted', async () => {
    const { secrets } = await openSecrets({ folder: temporaryFolder() })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    const program = { transport: 'stdio', command: 'x', args: ['--token', '${TOKEN}'] }
    const error = await failure(() => secrets.resolve('x', written('global', program)))
    expect(error).toMatchObject({ code: 'config-invalid' })
    expect(error.message).toMatch(/secretsInArguments/)
    const permitted = secrets.resolve('x', written('global', { ...program, secretsInArguments: true }))
    expect(permitted).toMatchObject({ args: ['--token', value] })
  })

  it('breaks no header', async () => {
    const { secrets } = await openSecrets({ folder: temporaryFolder() })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value: `${value}\r\nX-Admin: yes` })
    const error = await failure(() => secrets.resolve('x', written('global', bearer)))
    expect(error.message).toMatch(/^headers.Authorization contains a line break/)
    expect(error.message).not.toContain(value)
  })

  it('is hidden everywhere from the moment it is handed out', async () => {
    const { secrets, masking } = await openSecrets({ folder: temporaryFolder() })
    await secrets.set(administrator, { scope: 'global', name: 'TOKEN', value })
    secrets.resolve('x', written('global', bearer))
    expect(masking.text(`it says ${value}`)).toBe('it says [secret]')
    expect(secrets.list(administrator)[0]?.lastUsedAt).toBeDefined()
  })
})

describe('who may', () => {
  it.each([
    [
      'an administrator',
      administrator,
      ['global', 'project:shop', 'project:other', 'agent:a', 'user:alice', 'user:bob', 'session:work'],
    ],
    ['a member and owner of a project', alice, ['project:shop', 'user:alice', 'session:work']],
    ['an auditor', auditor, []],
    ['an agent', agent, []],
  ] as const)('%s', async (_, principal, allowed) => {
    const { secrets } = await openSecrets({ folder: temporaryFolder() })
    const all = [
      'global',
      'project:shop',
      'project:other',
      'agent:a',
      'user:alice',
      'user:bob',
      'session:work',
      'session:x',
    ] as const
    const done: string[] = []
    for (const scope of all.filter((each) => each !== 'session:x' || principal !== administrator)) {
      await Promise.resolve()
        .then(() => secrets.set(principal, { scope, name: 'TOKEN', value }))
        .then(
          () => done.push(scope),
          () => {},
        )
      await secrets.set(administrator, { scope, name: 'TOKEN', value })
    }
    expect(done).toEqual(allowed)
    const seen = principal === auditor ? all : allowed
    expect(
      secrets
        .list(principal)
        .map(({ scope }) => scope)
        .sort(),
    ).toEqual([...seen].sort())
  })

  it('a short value is taken, with a warning that it will not be hidden', async () => {
    const { secrets } = await openSecrets({ folder: temporaryFolder() })
    const saved = await secrets.set(administrator, { scope: 'global', name: 'PIN', value: '1234' })
    expect(saved).toMatchObject({ masked: false, warning: expect.stringMatching(/shorter than 8/) })
    expect(JSON.stringify(saved)).not.toContain('1234"')
  })
})
