import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import type { Principal } from '../../src/contract/principal.ts'
import { adminToken, createIdentity, type Identity, toBearer } from '../../src/identity/identity.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { ids, open, readerOf, temporaryFolder } from '../storage/support.ts'

/** Tests compare many passwords. */
const cheap = { logN: 4, r: 1, p: 1 }
const start = Date.parse('2030-01-01T00:00:00Z')

async function openIdentity(folder = temporaryFolder()) {
  const time = { now: start }
  const clock = { ...systemClock, now: () => time.now }
  const storage = await open(folder, { clock })
  const identity = await createIdentity({ storage, folder, clock, ids, passwordCost: cheap })
  onTestFinished(() => identity.close())
  return { folder, time, storage, identity }
}

function refusal(action: () => unknown): GatewayError {
  try {
    action()
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('It was not refused')
}

it('knows an agent by its token, before and after a restart', async () => {
  const first = await openIdentity()
  const created = await first.identity.tokens.create(adminToken, { agent: 'reviewer' })
  expect(created.token).toMatch(/^sp_[0-9a-z]{10}_[A-Za-z0-9_-]{43}$/)
  expect(created.token.startsWith(created.prefix)).toBe(true)
  expect(first.identity.authenticate(created.token)).toMatchObject({ kind: 'agent', name: 'reviewer' })
  await first.storage.close()
  const second = await openIdentity(first.folder)
  expect(second.identity.authenticate(created.token)).toMatchObject({ kind: 'agent', name: 'reviewer' })
})

type Case = readonly [
  what: string,
  code: 'token-missing' | 'token-invalid',
  given: (tokens: Tokens) => string | undefined,
]
type Tokens = { valid: string; revoked: string; expired: string; admin: string }

const fabricated = `sp_abcdefghjk_${'A'.repeat(43)}`
const cases: Case[] = [
  ['no token', 'token-missing', () => undefined],
  ['an empty token', 'token-missing', () => ''],
  ['a space', 'token-invalid', () => ' '],
  ['nonsense', 'token-invalid', () => 'open sesame'],
  ['a very long text', 'token-invalid', () => 'x'.repeat(1_000_000)],
  ['a fabricated token', 'token-invalid', () => fabricated],
  ['the id of a token with another secret', 'token-invalid', ({ valid }) => valid.slice(0, 14) + fabricated.slice(14)],
  [
    'the id of the administrator with another secret',
    'token-invalid',
    ({ admin }) => admin.slice(0, 14) + fabricated.slice(14),
  ],
  ['the secret of a token under another id', 'token-invalid', ({ valid }) => fabricated.slice(0, 14) + valid.slice(14)],
  ['a token that was cut', 'token-invalid', ({ valid }) => valid.slice(0, -1)],
  ['a token with something behind it', 'token-invalid', ({ valid }) => `${valid}\n`],
  ['a token in capitals', 'token-invalid', ({ valid }) => valid.toUpperCase()],
  ['two tokens', 'token-invalid', ({ valid, admin }) => `${valid}, ${admin}`],
  ['two headers joined to one', 'token-invalid', ({ valid }) => toBearer(`Bearer ${valid}, Bearer ${valid}`)],
  ['two headers', 'token-invalid', ({ valid }) => toBearer([`Bearer ${valid}`, `Bearer ${valid}`])],
  ['no header', 'token-missing', () => toBearer(undefined)],
  ['an empty list of headers', 'token-missing', () => toBearer([])],
  ['an empty header', 'token-missing', () => toBearer('')],
  ['a header without a token', 'token-missing', () => toBearer('Bearer ')],
  ['a password instead of a token', 'token-missing', () => toBearer('Basic YWRtaW46YWRtaW4=')],
  ['a revoked token', 'token-invalid', ({ revoked }) => revoked],
  ['an expired token', 'token-invalid', ({ expired }) => expired],
]

it.each(cases)('refuses %s as %s, and repeats no token', async (_, code, given) => {
  const { folder, identity, time } = await openIdentity()
  const { token: valid } = await identity.tokens.create(adminToken, { agent: 'valid' })
  const { token: revoked, id } = await identity.tokens.create(adminToken, { agent: 'revoked' })
  await identity.tokens.revoke(adminToken, id)
  const { token: expired } = await identity.tokens.create(adminToken, {
    agent: 'expired',
    expiresAt: '2030-01-01T00:01:00Z',
  })
  expect(identity.authenticate(expired)).toMatchObject({ kind: 'agent', name: 'expired' })
  time.now = start + 60_000
  const admin = readFileSync(join(folder, 'admin-token'), 'utf8').trim()

  const error = refusal(() => identity.authenticate(given({ valid, revoked, expired, admin })))
  expect(error.code).toBe(code)
  const told = inspect(error, { depth: 5 }) + JSON.stringify(error)
  for (const token of [valid, revoked, expired, admin, fabricated]) expect(told).not.toContain(token.slice(14))
})

it.each(['Bearer', 'bearer', 'BEARER'])('reads a token behind the word %s', (word) => {
  expect(toBearer(`${word} ${fabricated}`)).toBe(fabricated)
  expect(toBearer([`${word} ${fabricated}`])).toBe(fabricated)
})

it('makes the token of the administrator at the first start, for nobody else to read, and keeps it', async () => {
  const first = await openIdentity()
  const path = join(first.folder, 'admin-token')
  const text = readFileSync(path, 'utf8')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(first.identity.authenticate(text.trim())).toMatchObject({
    kind: 'user',
    name: 'admin-token',
    role: 'administrator',
  })
  await first.storage.close()
  chmodSync(path, 0o644)
  const second = await openIdentity(first.folder)
  expect(readFileSync(path, 'utf8')).toBe(text)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(second.identity.authenticate(text.trim())).toMatchObject({ role: 'administrator' })
  expect(readdirSync(first.folder).filter((name) => name.startsWith('admin-token'))).toEqual(['admin-token'])
})

it.each(['', 'half a tok', `${fabricated}${fabricated}`])(
  'replaces a token file that holds no token: %j',
  async (rest) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'admin-token'), rest)
    const { identity } = await openIdentity(folder)
    const text = readFileSync(join(folder, 'admin-token'), 'utf8').trim()
    expect(identity.authenticate(text)).toMatchObject({ role: 'administrator' })
    expect(statSync(join(folder, 'admin-token')).mode & 0o777).toBe(0o600)
  },
)

it('agrees on one administrator token when several start at once', async () => {
  const { folder, storage } = await openIdentity()
  const other = temporaryFolder()
  const parts = { storage, folder: other, clock: systemClock, ids }
  const identities = await Promise.all(Array.from({ length: 8 }, () => createIdentity(parts)))
  const text = readFileSync(join(other, 'admin-token'), 'utf8').trim()
  for (const identity of identities) expect(identity.authenticate(text)).toMatchObject({ role: 'administrator' })
  expect(readdirSync(other)).toEqual(['admin-token'])
  expect(existsSync(join(folder, 'admin-token'))).toBe(true)
})

it('shows a token once and keeps only its digest', async () => {
  const { folder, identity, storage } = await openIdentity()
  const { token, id } = await identity.tokens.create(adminToken, { agent: 'reviewer' })
  await identity.tokens.revoke(adminToken, id)
  await storage.flush()
  const secret = token.slice(14)
  expect(JSON.stringify(identity.tokens.list(adminToken))).not.toContain(secret)
  for (const file of readdirSync(folder)) {
    expect([file, readFileSync(join(folder, file)).includes(secret)]).toEqual([file, false])
  }
})

it('refuses a revoked token at once, before the revocation is written', async () => {
  const { identity } = await openIdentity()
  const { token, id } = await identity.tokens.create(adminToken, { agent: 'reviewer' })
  const revoking = identity.tokens.revoke(adminToken, id)
  expect(refusal(() => identity.authenticate(token)).code).toBe('token-invalid')
  expect(await revoking).toMatchObject({ id, revokedAt: '2030-01-01T00:00:00.000Z' })
})

it('refuses a revoked token although the revocation could not be written, and says that it was not', async () => {
  const { identity, storage } = await openIdentity()
  const { token, id } = await identity.tokens.create(adminToken, { agent: 'reviewer' })
  await storage.close()
  await expect(identity.tokens.revoke(adminToken, id)).rejects.toMatchObject({ code: 'storage-unavailable' })
  expect(refusal(() => identity.authenticate(token)).code).toBe('token-invalid')
})

it('makes no token that it could not write down', async () => {
  const { identity, storage } = await openIdentity()
  await storage.close()
  await expect(identity.tokens.create(adminToken, { agent: 'reviewer' })).rejects.toMatchObject({
    code: 'storage-unavailable',
  })
  expect(identity.tokens.list(adminToken)).toEqual([])
})

const ada: Principal = { kind: 'user', name: 'ada', role: 'administrator', person: true }

it('records once who made and who revoked a token', async () => {
  const { identity, storage } = await openIdentity()
  await identity.setup.finish({ code: identity.setup.code() ?? '', name: 'ada', password: 'correct horse battery' })
  const { id } = await identity.tokens.create(ada, { agent: 'reviewer', expiresAt: '2031-01-01T00:00:00Z' })
  await identity.tokens.revoke(adminToken, id)
  await identity.tokens.revoke(ada, id)
  const { items } = await storage.audit.list({ limit: 10, subject: `token:${id}` })
  expect(items.map(({ kind, principal, body }) => ({ kind, principal, body }))).toEqual([
    { kind: 'change', principal: 'user:admin-token', body: { action: 'token-revoked', agent: 'reviewer' } },
    {
      kind: 'change',
      principal: 'user:ada',
      body: { action: 'token-created', agent: 'reviewer', expiresAt: '2031-01-01T00:00:00.000Z' },
    },
  ])
})

it('lists tokens, and agents with how many of theirs are valid', async () => {
  const { identity } = await openIdentity()
  const first = await identity.tokens.create(adminToken, { agent: 'b' })
  await identity.tokens.create(adminToken, { agent: 'b' })
  const only = await identity.tokens.create(adminToken, { agent: 'a' })
  await identity.tokens.revoke(adminToken, first.id)
  await identity.tokens.revoke(adminToken, only.id)
  expect(identity.agents.list(ada)).toMatchObject([
    { name: 'a', tokens: 0 },
    { name: 'b', tokens: 1 },
  ])
  expect(identity.tokens.list(adminToken)).toHaveLength(3)
  expect(identity.tokens.list(adminToken)[0]).toEqual({
    id: first.id,
    agent: 'b',
    prefix: `sp_${first.id}`,
    createdAt: '2030-01-01T00:00:00.000Z',
    createdBy: 'user:admin-token',
    revokedAt: '2030-01-01T00:00:00.000Z',
  })
})

it('writes down the last use of a token once a minute, however often it is used', async () => {
  const { folder, identity, storage, time } = await openIdentity()
  const { token } = await identity.tokens.create(adminToken, { agent: 'reviewer' })
  const reader = readerOf(folder)
  const useAt = async (seconds: number) => {
    time.now = start + seconds * 1000
    for (let count = 0; count < 100; count++) identity.authenticate(token)
    await storage.flush()
    return reader.all('select last_used_at from tokens').map(({ last_used_at }) => last_used_at)
  }
  expect(await useAt(0)).toEqual([start])
  expect(await useAt(59)).toEqual([start])
  expect(await useAt(60)).toEqual([start + 60_000])
  expect(identity.tokens.list(adminToken)[0]?.lastUsedAt).toBe('2030-01-01T00:01:00.000Z')
})

const impossible: [string, Parameters<Identity['tokens']['create']>[1]][] = [
  ['a name that cannot stand in an address', { agent: 'a b/c' }],
  ['no name', { agent: '' }],
  ['the reserved name', { agent: 'sallyport' }],
  ['an end in the past', { agent: 'a', expiresAt: '2029-12-31T23:59:59Z' }],
  ['an end that is no time', { agent: 'a', expiresAt: 'tomorrow' }],
]

it.each(impossible)('makes no token with %s', async (_, wanted) => {
  const { identity } = await openIdentity()
  await expect(identity.tokens.create(adminToken, wanted)).rejects.toMatchObject({ code: 'request-invalid' })
  expect(identity.tokens.list(adminToken)).toEqual([])
})

it('cannot revoke a token that is not there', async () => {
  const { identity } = await openIdentity()
  await expect(identity.tokens.revoke(adminToken, 'abcdefghjk')).rejects.toMatchObject({ code: 'not-found' })
})
