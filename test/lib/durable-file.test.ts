import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sealFolder } from '../../src/cli/client/seal.ts'
import { loadAdminToken } from '../../src/identity/admin-token.ts'
import { appendLine, createFile, replaceFile } from '../../src/lib/durable-file.ts'
import { loadAuditKeys, rememberAuditKeys } from '../../src/storage/audit-key.ts'
import { addKey, loadKeys } from '../../src/storage/key.ts'
import { ids, temporaryFolder } from '../storage/support.ts'

/** Calls the function, and tells whether it forced the content of this file to disk, and then its name. */
async function isDurable(file: string, write: () => Promise<unknown>): Promise<boolean> {
  const syncs: { readonly file: number; readonly named: boolean }[] = []
  const handle = await open(import.meta.filename)
  const prototype: Pick<FileHandle, 'sync' | 'stat'> = Object.getPrototypeOf(handle)
  await handle.close()
  const { sync } = prototype
  prototype.sync = async function () {
    const { ino } = await this.stat()
    syncs.push({ file: ino, named: existsSync(file) })
    return sync.call(this)
  }
  try {
    await write()
  } finally {
    prototype.sync = sync
  }
  const content = syncs.findIndex((each) => each.file === statSync(file).ino)
  const name = syncs.findLastIndex((each) => each.file === statSync(dirname(file)).ino && each.named)
  return content !== -1 && name > content
}

describe('a file that is written', () => {
  it.each([
    ['as a new one', createFile],
    ['in place of another', replaceFile],
    ['line by line', appendLine],
  ])('%s survives a power failure: content and name are on disk', async (_, write) => {
    const file = join(temporaryFolder(), 'file')
    expect(await isDurable(file, () => write(file, 'text\n'))).toBe(true)
    expect(readFileSync(file, 'utf8')).toBe('text\n')
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('leaves no draft behind when it cannot take its place', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'taken', 'by'), { recursive: true })
    await expect(replaceFile(join(folder, 'taken'), 'text')).rejects.toThrow()
    expect(await createFile(join(folder, 'taken'), 'text')).toBe(false)
    expect(readdirSync(folder)).toEqual(['taken'])
  })

  it('is whole when several replace it at once', async () => {
    const folder = temporaryFolder()
    const texts = Array.from({ length: 20 }, (_, at) => `${at}`.repeat(1000))
    await Promise.all(texts.map((text) => replaceFile(join(folder, 'file'), text)))
    expect(texts).toContain(readFileSync(join(folder, 'file'), 'utf8'))
    expect(readdirSync(folder)).toEqual(['file'])
  })
})

describe('on disk, content and name, before it is used, is', () => {
  it('the key of secrets, when it is made and when it is rotated', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'key')
    expect(await isDurable(file, () => loadKeys({ folder, environment: {} }))).toBe(true)
    expect(await isDurable(file, () => addKey(file, []))).toBe(true)
  })

  it('the key of the record, when it is made and when another is remembered', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'audit-key')
    expect(await isDurable(file, () => loadAuditKeys({ folder, environment: {} }))).toBe(true)
    const environment = { SALLYPORT_KEY: randomBytes(32).toString('base64') }
    const older = randomBytes(32)
    expect(await isDurable(file, () => rememberAuditKeys({ folder, environment }, [older]))).toBe(true)
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2)
  })

  it('the token of the administrator, also in place of a damaged one', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'admin-token')
    expect(await isDurable(file, () => loadAdminToken(folder, ids))).toBe(true)
    writeFileSync(file, 'sp_half')
    expect(await isDurable(file, () => loadAdminToken(folder, ids))).toBe(true)
    expect(readFileSync(file, 'utf8')).toMatch(/^sp_\w{10}_/)
    expect(readdirSync(folder)).toEqual(['admin-token'])
  })

  it('the seal of a data folder, and the key of the seals', async () => {
    const [home, folder] = [temporaryFolder(), temporaryFolder()]
    const [seal, key] = [join(folder, 'seal'), join(home, 'sallyport', 'folder-key')]
    expect(await isDurable(key, () => sealFolder(folder, { XDG_STATE_HOME: home }))).toBe(true)
    writeFileSync(seal, 'of another place')
    expect(await isDurable(seal, () => sealFolder(folder, { XDG_STATE_HOME: home }))).toBe(true)
  })
})
