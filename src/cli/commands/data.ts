import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Compaction } from '../../contract/compaction.ts'
import { toGatewayError } from '../../contract/errors.ts'
import { demandOwnFolder } from '../client/data-folder.ts'
import { toBytes } from '../terminal/bytes.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, addExamples, addGlobalOptions, type Context, noInput, type Run } from './command.ts'

const patienceMs = 3_600_000

export function addData(program: Command, run: Run): void {
  const data = program.command('data').description('maintain the database of the gateway')
  addGlobalOptions(data)
  addExamples(data, ['sallyport data compact'])

  addCommand(data, run, {
    use: 'compact',
    summary: 'shrink the database file by removing unused space',
    notes: [
      'Asks the running gateway, which works in small steps. If no gateway runs, the command works on the data folder directly.',
      'The first time, a file of an earlier version is rewritten completely, and calls wait until that is done.',
      'On PostgreSQL the command only prints what to do instead.',
    ],
    examples: ['sallyport data compact', 'sallyport data compact --data /var/lib/sallyport --json'],
    input: noInput,
    async run(context) {
      const done = await compact(context)
      context.terminal.answer(done, () => describe(done))
      return exit.done
    },
  })
}

async function compact({ settings, request, terminal }: Context): Promise<Compaction> {
  const { dataFolder, databaseUrl, url } = settings
  if (databaseUrl === undefined) demandOwnFolder(settings, dataFolder)
  try {
    return await request('Compacting the database', (client) => client.data.compact(), patienceMs)
  } catch (error) {
    if (toGatewayError(error).code !== 'unreachable' || url !== undefined) throw error
    if (databaseUrl !== undefined) {
      const { postgresAdvice } = await import('../../storage/compaction.ts')
      return { database: 'postgresql', advice: postgresAdvice }
    }
    if (!existsSync(join(dataFolder, 'sallyport.db'))) throw error
    terminal.talk(`No gateway runs: compacting the database in ${dataFolder} directly.`)
    const { compactFolder } = await import('../../storage/sqlite/compact.ts')
    return compactFolder(dataFolder)
  }
}

function describe({ before, after, advice }: Compaction): string {
  if (advice !== undefined)
    return before === undefined ? `${advice}.` : `${advice}. The database has ${toBytes(before ?? 0)}.`
  return `${toBytes(before ?? 0)} before, ${toBytes(after ?? 0)} after.`
}
