import { randomBytes } from 'node:crypto'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadAuditKeys, rememberAuditKeys } from '../../src/storage/audit-key.ts'
import { loadKeys } from '../../src/storage/key.ts'
import { temporaryFolder } from '../storage/support.ts'
import { fill, kindsOf, openRecord, verify } from './support.ts'

const never = new AbortController().signal

it('makes a key for the record once, readable by its owner only', async () => {
  const folder = join(temporaryFolder(), 'data')
  const made = await Promise.all(Array.from({ length: 4 }, () => loadAuditKeys({ folder, environment: {} })))
  expect(new Set(made.map(([key]) => key.toString('hex'))).size).toBe(1)
  expect(statSync(join(folder, 'audit-key')).mode & 0o777).toBe(0o600)
})

it('has the same key wherever SALLYPORT_KEY is the same, and another one than that itself', async () => {
  const main = randomBytes(32)
  const [one] = await loadAuditKeys({
    folder: temporaryFolder(),
    environment: { SALLYPORT_KEY: main.toString('base64') },
  })
  const [two] = await loadAuditKeys({ folder: temporaryFolder(), environment: { SALLYPORT_KEY: main.toString('hex') } })
  expect(one.equals(two)).toBe(true)
  expect(one.equals(main)).toBe(false)
  const environment = { SALLYPORT_KEY: 'short' }
  await expect(loadAuditKeys({ folder: temporaryFolder(), environment })).rejects.toThrow(
    'SALLYPORT_KEY is not a valid key',
  )
})

it('proves what was written under an earlier key as well', async () => {
  const folder = temporaryFolder()
  const [first, second] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
  const environments = [
    {},
    { SALLYPORT_KEY: first },
    { SALLYPORT_KEY: second, SALLYPORT_KEY_PREVIOUS: first },
    { SALLYPORT_KEY: second },
  ]
  for (const environment of environments) {
    const { storage, audit, close } = await openRecord(folder, { environment })
    await fill(storage, 1)
    expect(await audit.verify(never)).toMatchObject({ findings: [], keyed: true })
    await close()
  }
  expect(kindsOf(await verify(folder))).toContain('altered') // without the key in use
})

it('proves what was written before the main key in a file was rotated', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'main-key')
  const environment = { SALLYPORT_KEY_FILE: file }
  writeFileSync(file, randomBytes(32).toString('base64'))
  const before = await openRecord(folder, { environment })
  await fill(before.storage, 1)
  await before.close()
  await rememberAuditKeys({ folder, environment }, (await loadKeys({ folder, environment })).keys)
  writeFileSync(file, randomBytes(32).toString('base64'))
  const after = await openRecord(folder, { environment })
  expect(await after.audit.verify(never)).toMatchObject({ findings: [], keyed: true })
  await after.close()
})
