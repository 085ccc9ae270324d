import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { toErrorBody, toGatewayError, withoutOwn } from '../../src/contract/errors.ts'
import { startGateway } from '../../src/http/serve.ts'
import { loadAuditKeys } from '../../src/storage/audit-key.ts'
import { createReaders, toUnavailable } from '../../src/storage/postgres/connection.ts'
import { toErrorMessage } from '../../src/wire/rpc-error.ts'
import { emptyDatabase, runOn } from '../support/postgres.ts'
import { callOf, open, temporaryFolder } from './support.ts'

function systemError(code: string, path?: string): Error {
  return Object.assign(new Error(`${code}: something, open '${path}'`), { code, path })
}

describe('trouble with a file of the user', () => {
  it.each([
    ['ENOSPC', '/data/key cannot be used: the disk is full (ENOSPC)'],
    ['EDQUOT', '/data/key cannot be used: the disk quota is used up (EDQUOT)'],
    ['EROFS', '/data/key cannot be used: the file system is read-only (EROFS)'],
    ['EACCES', '/data/key cannot be used: permission denied (EACCES)'],
    ['EPERM', '/data/key cannot be used: permission denied (EPERM)'],
    ['EIO', '/data/key cannot be used: the disk reports an error (EIO)'],
    ['EMFILE', '/data/key cannot be used: too many files are open (EMFILE)'],
  ])('%s is not taken for a defect of Sallyport', (code, message) => {
    const failure = toGatewayError(systemError(code, '/data/key'))
    expect(failure).toMatchObject({ code: 'file-failed', message })
    expect(failure.entry.hint).not.toContain('defect')
  })

  it('is told to others without the path, which stays in the log', () => {
    const failure = toGatewayError(systemError('ENOSPC', '/data/key'))
    const told = withoutOwn(failure)
    expect(told.message).toBe(
      'The gateway cannot use one of its files: the disk is full (ENOSPC). The log of the gateway names the file',
    )
    expect(JSON.stringify(toErrorBody(told))).not.toContain('/data')
    expect(toErrorMessage('1', failure).toString()).not.toContain('/data')
  })

  it('names the data folder that cannot be used, and why', async () => {
    const folder = join(temporaryFolder(), 'file')
    writeFileSync(folder, '')
    const message = expect.stringMatching(/file.* cannot be used: (it is not a folder|it already exists) \(E\w+\)$/)
    await expect(loadAuditKeys({ folder, environment: {} })).rejects.toMatchObject({
      code: 'storage-unavailable',
      message,
    })
    const failure = await startGateway({ dataFolder: folder, environment: {} }).catch(toGatewayError)
    expect(failure).toMatchObject({ code: 'file-failed', message })
  })

  it('names a database file that cannot be opened', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'sallyport.db'))
    const failure = await open(folder).catch((error: unknown) => toGatewayError(error))
    expect(failure).toMatchObject({ code: 'storage-unavailable' })
    expect(Object(failure).message).toContain(`The database in ${folder} cannot be opened: `)
  })

  it('says that the disk is full, while nothing can be recorded', async () => {
    const storage = await open(temporaryFolder(), { maxPages: 200 })
    const fill = async () => {
      for (;;) await storage.claim(callOf('write', { arguments: { text: 'x'.repeat(20_000) } }))
    }
    await expect(fill()).rejects.toThrow('The database cannot be written: the disk is full (SQLITE_FULL)')
    expect(storage.findProblem()?.message).toContain('the disk is full')
  })
})

describe('trouble with PostgreSQL', () => {
  const url = 'postgres://me:hunter2hunter2@db/x'
  const told = (code: string, message: string) =>
    toUnavailable('The database cannot be written', Object.assign(new Error(message), { code }), url).message

  it.each([
    ['53300', 'sorry, too many clients already', 'PostgreSQL has no free connections'],
    ['53300', 'too many connections for role "me"', 'PostgreSQL has no free connections'],
    ['53100', 'could not extend file', 'the disk of PostgreSQL is full'],
    ['25006', 'cannot execute INSERT in a read-only transaction', 'the database is read-only'],
    ['57P03', 'the database system is starting up', 'PostgreSQL does not accept connections yet'],
  ])('%s (%s) is told as: %s', (code, message, words) => {
    expect(told(code, message)).toContain(words)
    expect(told(code, message)).toContain(message)
    expect(told(code, message)).toContain(code)
  })

  it('says what to do when all connections of a role are taken', async () => {
    const database = await emptyDatabase()
    const role = `few_${process.pid}`
    const name = new URL(database).pathname.slice(1)
    await runOn(database, `create role ${role} login password 'secret-of-few' connection limit 1`)
    await runOn(database, `alter database ${name} owner to ${role}`)
    await runOn(database, `alter schema public owner to ${role}`)
    const few = new URL(database)
    few.username = role
    few.password = 'secret-of-few'
    const failure = await open({ folder: temporaryFolder(), databaseUrl: few.href }).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'storage-unavailable' })
    const { message } = toGatewayError(failure)
    expect(message).toContain('PostgreSQL has no free connections')
    expect(message).toContain('A gateway needs about seven: raise max_connections, or the limit of the role')
    expect(message).not.toContain('secret-of-few')
    await runOn(database, `reassign owned by ${role} to current_user`)
    await runOn(database, `drop owned by ${role}`)
    await runOn(database, `drop role ${role}`)
  })

  it('says that all connections for reading are in use', async () => {
    const database = await emptyDatabase()
    const pool = await createReaders({ url: database, name: 'test', connectMs: 300 })
    const busy = Array.from({ length: 4 }, () => pool.query('select pg_sleep(3)').catch(() => {}))
    const error = await pool.query('select 1').catch((thrown: unknown) => thrown)
    expect(toUnavailable('The database cannot be read', error, database).message).toContain(
      'all connections of this gateway for reading are in use',
    )
    await Promise.all(busy)
    await pool.end()
  })
})
