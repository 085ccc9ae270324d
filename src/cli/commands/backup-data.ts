import { resolve } from 'node:path'
import { systemClock } from '../../lib/clock.ts'
import { createIds } from '../../lib/ids.ts'
import { type BackupFacts, restoreBackup, writeBackup } from '../../storage/backup.ts'
import { describeDatabaseUrl } from '../../storage/postgres/connection.ts'
import { demandOwnFolder, prepareFolder } from '../client/data-folder.ts'
import type { Settings } from '../client/settings.ts'

type Told = BackupFacts & { readonly place: string }

/** Reads the database directly, so that a backup needs no running gateway. */
export async function backup(settings: Settings, file: string): Promise<Told> {
  const { databaseUrl, dataFolder } = settings
  if (databaseUrl === undefined) demandOwnFolder(settings, dataFolder)
  const source =
    databaseUrl === undefined
      ? (await import('../../storage/sqlite/backup.ts')).openSqliteSource(dataFolder)
      : await (await import('../../storage/postgres/backup.ts')).openPostgresSource(databaseUrl)
  try {
    const facts = await writeBackup({ source, file: resolve(file), clock: systemClock, ids: createIds() })
    return { ...facts, place: toPlace(settings, dataFolder) }
  } finally {
    await source.close()
  }
}

export async function restore(settings: Settings, file: string, talk: (line: string) => void): Promise<Told> {
  const { databaseUrl, folderHere } = settings
  if (databaseUrl === undefined) await prepareFolder(settings, talk)
  const now = systemClock.now()
  const target =
    databaseUrl === undefined
      ? (await import('../../storage/sqlite/backup.ts')).openSqliteTarget(folderHere, now)
      : await (await import('../../storage/postgres/backup.ts')).openPostgresTarget(databaseUrl, now)
  const facts = await restoreBackup({ target, file: resolve(file), clock: systemClock })
  return { ...facts, place: toPlace(settings, folderHere) }
}

function toPlace({ databaseUrl }: Settings, folder: string): string {
  return databaseUrl === undefined ? folder : describeDatabaseUrl(databaseUrl)
}
