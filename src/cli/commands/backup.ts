import type { Command } from 'commander'
import { z } from 'zod'
import type { BackupFacts } from '../../storage/backup.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, type Context, type Run } from './command.ts'

const FileInput = z.object({ file: z.string().min(1) })

const where =
  'Uses the database in SALLYPORT_DATABASE_URL if it is set, else the database in the data folder. A backup does not\n' +
  'contain the key of the secrets, the key of the audit (audit-key), the admin token or the configuration file.'

export function addBackup(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'backup <file>',
    summary: 'write a consistent copy of all data to a file; works while the gateway runs',
    notes: [where],
    examples: ['sallyport backup sallyport.backup', 'sallyport backup /backups/today --data /var/lib/sallyport'],
    input: FileInput,
    async run(context, { file }) {
      const { backup } = await import('./backup-data.ts')
      return tell(context, file, 'Saved', await backup(context.settings, file))
    },
  })
  addCommand(program, run, {
    use: 'restore <file>',
    summary: 'restore a backup into an empty data folder or database; if it fails, nothing is stored',
    notes: [where, 'A backup of SQLite can be restored into PostgreSQL, and the reverse.'],
    examples: ['sallyport restore sallyport.backup --data /var/lib/sallyport'],
    input: FileInput,
    async run(context, { file }) {
      const { restore } = await import('./backup-data.ts')
      return tell(context, file, 'Restored', await restore(context.settings, file, context.terminal.talk))
    },
  })
}

function tell({ terminal }: Context, file: string, verb: string, facts: BackupFacts & { place: string }): number {
  terminal.answer({ file, ...facts }, () => `${verb} ${facts.rows} rows of ${facts.id} (${facts.place})`)
  return exit.done
}
