import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFile, replaceFile } from '../lib/durable-file.ts'
import type { Ids } from '../lib/ids.ts'
import { createTokenText, findTokenId, toDigest } from './token-text.ts'

export type AdminToken = { readonly id: string; readonly digest: Buffer }

/** The administrator's token for commands on the same machine. Read permission on the file is enough to use it. */
export async function loadAdminToken(folder: string, ids: Ids): Promise<AdminToken> {
  const path = join(folder, 'admin-token')
  return (await readToken(path)) ?? (await writeToken(path, ids))
}

async function readToken(path: string): Promise<AdminToken | undefined> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  })
  const id = findTokenId(text.trim())
  if (id === undefined) return undefined
  await chmod(path, 0o600)
  return { id, digest: toDigest(text.trim()) }
}

/** If two gateways start at once, both use the token that was written first. */
async function writeToken(path: string, ids: Ids): Promise<AdminToken> {
  const { id, text, digest } = createTokenText(ids)
  if (await createFile(path, `${text}\n`)) return { id, digest }
  const other = await readToken(path)
  if (other) return other
  await replaceFile(path, `${text}\n`)
  return { id, digest }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
