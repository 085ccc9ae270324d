import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Principal } from '../../src/contract/principal.ts'
import { adminToken } from '../../src/identity/identity.ts'
import { createPasswords } from '../../src/identity/passwords.ts'
import { changesOf, cheap, openIdentity, password, refusalOf, start } from './support.ts'

const hour = 3_600_000
const tokenFile: Principal = { kind: 'user', name: 'admin-token', role: 'administrator' }

describe('the first administrator', () => {
  it('is made by a code that works once', async () => {
    const { identity, storage } = await openIdentity({ first: false })
    const code = identity.setup.code() ?? ''
    expect(identity.setup.accepts(code)).toBe(true)
    await identity.setup.finish({ code, name: 'ada', password })
    expect(identity.users.list()).toMatchObject([{ name: 'ada', role: 'administrator' }])
    expect(identity.setup.accepts(code)).toBe(false)
    expect(identity.setup.code()).toBeUndefined()
    const again = await refusalOf(() => identity.setup.finish({ code, name: 'eve', password }))
    expect(again.code).toBe('forbidden')
    expect(await changesOf(storage, 'user:ada')).toEqual([
      { principal: 'user:ada', action: 'user-added', role: 'administrator', first: true },
    ])
  })

  it.each([
    ['a wrong code', () => 'x'.repeat(43), 0],
    ['no code', () => '', 0],
    ['a code that has expired', (code: string) => code, hour],
  ])('is not made by %s', async (_, toCode, later) => {
    const { identity, time } = await openIdentity({ first: false })
    const code = identity.setup.code() ?? ''
    time.now += later
    const refused = await refusalOf(() => identity.setup.finish({ code: toCode(code), name: 'eve', password }))
    expect(refused.code).toBe('forbidden')
    expect(identity.users.list()).toEqual([])
  })

  it('is not made by the code of an earlier link', async () => {
    const { identity } = await openIdentity({ first: false })
    const first = identity.setup.code() ?? ''
    identity.setup.code()
    expect((await refusalOf(() => identity.setup.finish({ code: first, name: 'eve', password }))).code).toBe(
      'forbidden',
    )
  })

  it('keeps the code when name or password cannot be used', async () => {
    const { identity } = await openIdentity({ first: false })
    const code = identity.setup.code() ?? ''
    const short = await refusalOf(() => identity.setup.finish({ code, name: 'ada', password: 'too short' }))
    expect(short).toMatchObject({ code: 'request-invalid', message: expect.stringContaining('12 characters') })
    await refusalOf(() => identity.setup.finish({ code, name: 'a b', password }))
    await identity.setup.finish({ code, name: 'ada', password })
  })

  it('is one, however many use the link at once', async () => {
    const { identity } = await openIdentity({ first: false })
    const code = identity.setup.code() ?? ''
    const names = ['ada', 'eve', 'bob', 'kim']
    const ended = await Promise.allSettled(names.map((name) => identity.setup.finish({ code, name, password })))
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(identity.users.list()).toHaveLength(1)
  })

  it('is one, also when each of two instances has its own link', async () => {
    const { storage, identity: one, folder } = await openIdentity({ first: false })
    const { createIdentity } = await import('../../src/identity/identity.ts')
    const { ids } = await import('../storage/support.ts')
    const { systemClock } = await import('../../src/lib/clock.ts')
    const two = await createIdentity({
      storage,
      folder,
      clock: { ...systemClock, now: () => start },
      ids,
      passwordCost: cheap,
    })
    const ended = await Promise.allSettled([
      one.setup.finish({ code: one.setup.code() ?? '', name: 'ada', password }),
      two.setup.finish({ code: two.setup.code() ?? '', name: 'eve', password }),
    ])
    two.close()
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(one.users.list()).toHaveLength(1)
  })

  it('becomes the owner of the agents that nobody owned', async () => {
    const { identity } = await openIdentity({ first: false })
    const { token } = await identity.tokens.create(adminToken, { agent: 'reviewer' })
    expect(identity.authenticate(token)).toMatchObject({ kind: 'agent', name: 'reviewer' })
    await identity.setup.finish({ code: identity.setup.code() ?? '', name: 'ada', password })
    expect(identity.authenticate(token)).toMatchObject({ kind: 'agent', name: 'reviewer', owner: 'ada' })
  })

  it('is `admin` when the environment has a password for it, at the very first start only', async () => {
    const first = await openIdentity({ first: false, firstPassword: password })
    expect(first.identity.users.list()).toMatchObject([{ name: 'admin', role: 'administrator' }])
    expect(first.identity.setup.code()).toBeUndefined()
    await first.storage.close()
    const second = await openIdentity({ place: { folder: first.folder }, firstPassword: 'another long password' })
    expect(second.identity.users.list()).toHaveLength(1)
    expect((await second.signIn('admin')).principal).toMatchObject({ name: 'admin', person: true })
    expect((await refusalOf(() => second.signIn('admin', 'another long password'))).code).toBe('sign-in-failed')
  })

  it('is not made from a password that is too short: the start is refused', async () => {
    const refused = await refusalOf(() => openIdentity({ first: false, firstPassword: 'short' }))
    expect(refused).toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('SALLYPORT_ADMIN_PASSWORD'),
    })
  })
})

describe('a password', () => {
  it('is kept salted, slowly hashed, and with what it was hashed with', async () => {
    const passwords = createPasswords()
    const [one, two] = await Promise.all([passwords.hash(password), passwords.hash(password)])
    expect(one).toMatch(/^scrypt\$15\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
    expect(one).not.toBe(two)
    expect(await createPasswords(cheap).verify(password, one)).toBe(true)
    expect(await passwords.verify(`${password}!`, one)).toBe(false)
    expect(await passwords.verify(password, undefined)).toBe(false)
  })

  it('is the same however its letters are composed', async () => {
    const passwords = createPasswords(cheap)
    const stored = await passwords.hash('cafe\u0301 au lait, deux')
    expect(await passwords.verify('caf\u00e9 au lait, deux', stored)).toBe(true)
  })

  it('is worked on by few at once, and the queue behind them is bounded', async () => {
    const passwords = createPasswords({ logN: 12, r: 8, p: 1 })
    const ended = await Promise.allSettled(Array.from({ length: 100 }, () => passwords.verify(password, undefined)))
    const refused = ended.filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(66)
    expect(refused[0]).toMatchObject({ reason: { code: 'limit-exceeded' } })
    expect(await passwords.verify(password, undefined)).toBe(false)
  })

  it('is nowhere in what is stored, neither as text nor in the record', async () => {
    const { folder, identity, storage, signIn } = await openIdentity()
    const { principal, cookie } = await signIn('ada')
    await identity.users.setPassword(principal, 'ada', { password: 'a second long one', current: password })
    await storage.flush()
    for (const file of readdirSync(folder)) {
      const bytes = readFileSync(join(folder, file))
      for (const text of [password, 'a second long one', cookie.slice(11)]) {
        expect([file, text, bytes.includes(text)]).toEqual([file, text, false])
      }
    }
  })
})

describe('signing in', () => {
  it('makes a person of a user, who is known by the cookie, also after a restart', async () => {
    const first = await openIdentity()
    const { cookie, principal } = await first.signIn('ada')
    expect(principal).toMatchObject({ kind: 'user', name: 'ada', role: 'administrator', person: true })
    expect(await first.identity.signIns.authenticate(cookie)).toBe(principal)
    await first.storage.close()
    const second = await openIdentity({ place: { folder: first.folder }, first: false })
    expect(await second.identity.signIns.authenticate(cookie)).toEqual(principal)
  })

  it.each([
    ['a wrong password', 'ada', 'wrong horse battery'],
    ['an unknown name', 'nobody', password],
    ['an empty password', 'ada', ''],
    ['a name in other letters', 'ADA', password],
    ['the name of the token file', 'admin-token', password],
  ])('is refused with %s, in the same words', async (_, name, given) => {
    const { signIn, storage } = await openIdentity()
    const refused = await refusalOf(() => signIn(name, given))
    expect(refused).toMatchObject({ code: 'sign-in-failed', message: 'The name or the password is wrong', details: {} })
    const [entry] = await changesOf(storage)
    expect(entry).toMatchObject({ action: 'sign-in-refused', address: '127.0.0.1' })
    expect(JSON.stringify(entry)).not.toContain('nobody')
  })

  it.each([
    ['nothing', ''],
    ['nonsense', 'nonsense'],
    ['a made-up one', `abcdefghjk.${'A'.repeat(43)}`],
  ])('is not to be had by a cookie that is %s', async (_, cookie) => {
    const { identity } = await openIdentity()
    expect((await refusalOf(() => identity.signIns.authenticate(cookie))).code).toBe('sign-in-needed')
  })

  it('is not to be had by a cookie with another secret', async () => {
    const { identity, signIn } = await openIdentity()
    const { cookie } = await signIn('ada')
    const forged = cookie.slice(0, 11) + 'A'.repeat(43)
    expect((await refusalOf(() => identity.signIns.authenticate(forged))).code).toBe('sign-in-needed')
    expect(await identity.signIns.authenticate(cookie)).toMatchObject({ name: 'ada' })
  })

  it('ends after twelve hours without a request, and after seven days in any case', async () => {
    const { identity, signIn, time } = await openIdentity()
    const idle = await signIn('ada')
    const busy = await signIn('ada')
    for (let at = 11; at < 7 * 24; at += 11) {
      time.now = start + at * hour
      expect(await identity.signIns.authenticate(busy.cookie), `${at} h`).toMatchObject({ name: 'ada' })
    }
    expect((await refusalOf(() => identity.signIns.authenticate(idle.cookie))).code).toBe('sign-in-needed')
    time.now = start + 7 * 24 * hour
    expect((await refusalOf(() => identity.signIns.authenticate(busy.cookie))).code).toBe('sign-in-needed')
  })

  it('ends with signing out, at once, and only this one', async () => {
    const { identity, signIn, storage } = await openIdentity()
    const [one, two] = [await signIn('ada'), await signIn('ada')]
    const leaving = identity.signIns.signOut(one.principal)
    expect((await refusalOf(() => identity.signIns.authenticate(one.cookie))).code).toBe('sign-in-needed')
    await leaving
    expect(await identity.signIns.authenticate(two.cookie)).toBe(two.principal)
    expect((await changesOf(storage, 'user:ada'))[0]).toEqual({ principal: 'user:ada', action: 'signed-out' })
  })

  const endings: [string, (admin: Principal, opened: Awaited<ReturnType<typeof openIdentity>>) => unknown][] = [
    ['another role', (admin, { identity }) => identity.users.change(admin, 'bob', { role: 'auditor' })],
    ['being disabled', (admin, { identity }) => identity.users.change(admin, 'bob', { disabled: true })],
    [
      'another password',
      (admin, { identity }) => identity.users.setPassword(admin, 'bob', { password: 'x'.repeat(12) }),
    ],
    ['being removed', (admin, { remove }) => remove(admin, 'user', 'bob')],
  ]
  it.each(endings)('ends with %s, and whatever was open is told', async (_, end) => {
    const opened = await openIdentity()
    const { identity, person, signIn } = opened
    const bob = await person('bob', 'member')
    const { cookie, principal } = await signIn('bob')
    const { principal: ada } = await signIn('ada')
    const told: Principal[] = []
    identity.onRevoked((revoked) => void told.push(revoked))
    await end(ada, opened)
    expect((await refusalOf(() => identity.signIns.authenticate(cookie))).code).toBe('sign-in-needed')
    expect(told).toHaveLength(2)
    expect(told).toEqual(expect.arrayContaining([bob, principal]))
  })

  it('does not succeed for a user who is disabled while the password is compared', async () => {
    const { identity, person, signIn } = await openIdentity({ passwordCost: { logN: 14, r: 8, p: 1 } })
    await person('bob', 'member')
    const { principal: ada } = await signIn('ada')
    const signingIn = refusalOf(() => signIn('bob'))
    await identity.users.change(ada, 'bob', { disabled: true })
    expect((await signingIn).code).toBe('sign-in-failed')
  })

  it('keeps at most fifty of one user; the one that was silent for longest gives way', async () => {
    const { identity, signIn, time } = await openIdentity()
    const first = await signIn('ada')
    for (let count = 0; count < 50; count++) {
      time.now += 1000
      await signIn('ada')
    }
    expect((await refusalOf(() => identity.signIns.authenticate(first.cookie))).code).toBe('sign-in-needed')
  })
})

describe('whoever guesses passwords', () => {
  it('waits longer with every attempt, also with the right one, and gets in after the wait', async () => {
    const { signIn, time } = await openIdentity()
    const codes: string[] = []
    for (let count = 0; count < 7; count++) codes.push((await refusalOf(() => signIn('ada', 'wrong'))).code)
    expect(codes).toEqual([...Array(5).fill('sign-in-failed'), 'limit-exceeded', 'limit-exceeded'])
    const refused = await refusalOf(() => signIn('ada'))
    expect(refused.details).toEqual({ retryAfter: 1 })
    time.now += 1000
    await refusalOf(() => signIn('ada', 'wrong'))
    expect((await refusalOf(() => signIn('ada'))).details).toEqual({ retryAfter: 2 })
    time.now += 2000
    expect((await signIn('ada')).principal).toMatchObject({ name: 'ada' })
    expect((await refusalOf(() => signIn('ada', 'wrong'))).code).toBe('sign-in-failed')
  })

  it('gains nothing by trying many at once', async () => {
    const { signIn } = await openIdentity()
    const codes = await Promise.all(
      Array.from({ length: 50 }, async () => (await refusalOf(() => signIn('ada', 'wrong'))).code),
    )
    expect(codes.filter((code) => code === 'sign-in-failed')).toHaveLength(5)
    expect(await guessAtOnce(50, countLate)).toBe(50)
    expect(await guessAtOnce(50, countFirst)).toBe(5)
  })

  it('is slowed down for names that do not exist, and does not lock others out from elsewhere', async () => {
    const { identity } = await openIdentity()
    const from = (address: string, name: string, given = 'wrong') =>
      identity.signIns.signIn({ name, password: given, address })
    for (let count = 0; count < 5; count++) await refusalOf(() => from('192.0.2.1', 'ghost'))
    expect((await refusalOf(() => from('192.0.2.1', 'ghost'))).code).toBe('limit-exceeded')
    for (let count = 0; count < 5; count++) await refusalOf(() => from('192.0.2.1', 'ada'))
    expect((await from('192.0.2.2', 'ada', password)).principal).toMatchObject({ name: 'ada' })
  })

  it('is slowed down after thirty attempts whatever the names', async () => {
    const { identity } = await openIdentity()
    const codes: string[] = []
    for (let count = 0; count < 31; count++) {
      const attempt = { name: `name-${count}`, password: 'wrong', address: '192.0.2.1' }
      codes.push((await refusalOf(() => identity.signIns.signIn(attempt))).code)
    }
    expect(codes.filter((code) => code === 'sign-in-failed')).toHaveLength(30)
    expect(codes.at(-1)).toBe('limit-exceeded')
  })
})

/** What a limit lets through when many come at once: rightly, and as one would write it first. */
async function guessAtOnce(many: number, limit: (compare: () => Promise<void>) => Promise<boolean>): Promise<number> {
  const compare = () => new Promise<void>((resolve) => setImmediate(resolve))
  counted = 0
  const tried = await Promise.all(Array.from({ length: many }, () => limit(compare)))
  return tried.filter(Boolean).length
}
let counted = 0
async function countFirst(compare: () => Promise<void>): Promise<boolean> {
  if (counted >= 5) return false
  counted += 1
  await compare()
  return true
}
async function countLate(compare: () => Promise<void>): Promise<boolean> {
  if (counted >= 5) return false
  await compare()
  counted += 1
  return true
}

describe('users', () => {
  it('are made by an administrator who has signed in, and by nothing else', async () => {
    const { identity, person, remove } = await openIdentity()
    const wanted = { name: 'new', role: 'member' as const, password }
    const others: Principal[] = [
      await person('bob', 'member'),
      await person('aud', 'auditor'),
      { kind: 'agent', name: 'reviewer', owner: 'ada' },
      { kind: 'session', name: 's', owner: 'ada' },
    ]
    for (const other of others) {
      const refused = await refusalOf(() => identity.users.add(other, wanted))
      expect(['forbidden', 'person-needed']).toContain(refused.code)
    }
    for (const act of [
      () => identity.users.add(tokenFile, wanted),
      () => identity.users.change(tokenFile, 'bob', { role: 'administrator' }),
      () => identity.users.setPassword(tokenFile, 'bob', { password }),
      () => remove(tokenFile, 'user', 'bob'),
    ]) {
      expect((await refusalOf(act)).code).toBe('person-needed')
    }
    expect(identity.users.list().map(({ name }) => name)).toEqual(['ada', 'aud', 'bob'])
  })

  it('set their own password with the current one, and not that of others', async () => {
    const { identity, person, signIn } = await openIdentity()
    const bob = await person('bob', 'member')
    const next = 'another long password'
    const set = (name: string, current?: string) => identity.users.setPassword(bob, name, { password: next, current })
    expect((await refusalOf(() => set('bob'))).code).toBe('sign-in-failed')
    expect((await refusalOf(() => set('bob', 'wrong'))).code).toBe('sign-in-failed')
    expect((await refusalOf(() => set('ada', password))).code).toBe('forbidden')
    await set('bob', password)
    expect((await signIn('bob', next)).principal).toMatchObject({ name: 'bob' })
  })

  it('have names that cannot be mistaken for each other', async () => {
    const { identity, signIn } = await openIdentity()
    const { principal: ada } = await signIn('ada')
    const add = (name: string) => refusalOf(() => identity.users.add(ada, { name, role: 'member', password }))
    for (const name of ['ada', 'Ada', 'ADA']) expect((await add(name)).code).toBe('name-taken')
    for (const name of ['admin-token', 'Admin-Token', '', 'a b', 'a:b', 'a/b', 'sallyport']) {
      expect((await add(name)).code, name).toBe('request-invalid')
    }
  })

  it('come back with a new password when they were removed, and their past stays theirs', async () => {
    const { identity, person, signIn, remove } = await openIdentity()
    await person('bob', 'member')
    const { principal: ada } = await signIn('ada')
    await remove(ada, 'user', 'bob')
    expect(identity.users.list()).toHaveLength(1)
    expect((await refusalOf(() => signIn('bob'))).code).toBe('sign-in-failed')
    await identity.users.add(ada, { name: 'bob', role: 'auditor', password: 'another long password' })
    expect((await refusalOf(() => signIn('bob'))).code).toBe('sign-in-failed')
    expect((await signIn('bob', 'another long password')).principal).toMatchObject({ role: 'auditor' })
  })

  it('always keep one administrator, also when two take each other out at once', async () => {
    const { identity, person, signIn, remove } = await openIdentity()
    const { principal: ada } = await signIn('ada')
    for (const act of [
      () => identity.users.change(ada, 'ada', { role: 'member' }),
      () => identity.users.change(ada, 'ada', { disabled: true }),
      () => remove(ada, 'user', 'ada'),
    ]) {
      expect((await refusalOf(act)).code).toBe('last-administrator')
    }
    const eve = await person('eve', 'administrator')
    const ended = await Promise.allSettled([
      identity.users.change(ada, 'eve', { role: 'member' }),
      identity.users.change(eve, 'ada', { disabled: true }),
    ])
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const left = identity.users.list().filter(({ role, disabledAt }) => role === 'administrator' && !disabledAt)
    expect(left).toHaveLength(1)
  })

  it('stand in the record with who changed them, without any password', async () => {
    const { identity, person, signIn, storage, remove } = await openIdentity()
    await person('bob', 'member')
    const { principal: ada } = await signIn('ada')
    await identity.users.change(ada, 'bob', { role: 'auditor', groups: ['ops'] })
    await identity.users.setPassword(ada, 'bob', { password: 'another long password' })
    await remove(ada, 'user', 'bob')
    const entries = await changesOf(storage, 'user:bob')
    expect(entries.filter(({ principal }) => principal === 'user:ada').map(({ action }) => action)).toEqual([
      'user-removed',
      'user-removing',
      'password-set',
      'user-changed',
      'user-added',
    ])
    expect(JSON.stringify(entries)).not.toContain('password"')
    expect(JSON.stringify(entries)).not.toContain('scrypt')
  })
})
