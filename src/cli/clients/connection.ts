import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { ClientName } from '../../contract/client.ts'
import { replaceFile } from '../../lib/durable-file.ts'
import { readOwnFile } from '../../lib/file-trust.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'
import { demandOwnFolder } from '../client/data-folder.ts'
import type { Settings } from '../client/settings.ts'

/** What `connect` did to a file, so that `disconnect` can undo it. It contains no token. */
const ConnectionRecord = z.object({
  client: ClientName,
  file: z.string(),
  agent: z.string(),
  token: z.string().optional(),
  /** The exact text before; missing if the file did not exist. */
  before: z.string().optional(),
  mode: z.int(),
  /** The hash of the text that was written. */
  written: z.string(),
})
export type ConnectionRecord = z.infer<typeof ConnectionRecord>

const mostBytes = 67_108_864

/** The records are in the data folder, because it is private and belongs to this user. */
export function createConnections(settings: Settings) {
  const { dataFolder, folderOfUser } = settings
  const base = existsSync(dataFolder) ? dataFolder : folderOfUser
  // A record in a folder from a repository could name any file and any text.
  demandOwnFolder(settings, base)
  const folder = join(base, 'clients')
  const toPath = (client: ClientName, file: string) => join(folder, `${client}-${toHash(file).slice(0, 16)}.json`)
  return {
    find(client: ClientName, file: string): ConnectionRecord | undefined {
      const text = readOwnFile(toPath(client, file), mostBytes)
      if (text === undefined) return undefined
      const record = ConnectionRecord.safeParse(tryParse(text)).data
      return record?.client === client && record.file === file ? record : undefined
    },
    /** The path of the stored backup. */
    async save(record: ConnectionRecord): Promise<string> {
      makePrivateFolder(folder)
      const path = toPath(record.client, record.file)
      await replaceFile(path, `${JSON.stringify(record)}\n`)
      return path
    },
    remove: (client: ClientName, file: string) => rm(toPath(client, file), { force: true }),
  }
}

export function toHash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
