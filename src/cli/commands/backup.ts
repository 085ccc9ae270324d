import type { Command } from 'commander'
import { z } from 'zod'
import type { BackupFacts } from '../../storage/backup.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, type Context, type Run } from './command.ts'

const FileInput = z.object({ file: z.string().min(1) })

const where =
  'The data is that of SALLYPORT_DATABASE_URL if it is set, else that of the data folder. The keys of the secrets\n' +
  "and of the record (audit-key), the administrator's token and the configuration file are not part of a backup."

export function addBackup(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'backup <file>',
    summary: 'write a consistent copy of the data, also while the gateway runs',
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
    summary: 'put a backup into an empty data folder or database, whole or not at all',
    notes: [where, 'A backup of one kind of database may be restored into the other.'],
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
