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
  const data = program.command('data').description('the database of the gateway')
  addGlobalOptions(data)
  addExamples(data, ['sallyport data compact'])

  addCommand(data, run, {
    use: 'compact',
    summary: 'give unused room in the database file back to the disk',
    notes: [
      'Asks the running gateway; without one it works on the data folder itself. A running gateway does it in small steps.',
      'A file of an earlier version is written again as a whole the first time: calls wait until that is done.',
      'On PostgreSQL it says what to do instead.',
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
    terminal.talk(`No gateway runs: compacting ${dataFolder} itself.`)
    const { compactFolder } = await import('../../storage/sqlite/compact.ts')
    return compactFolder(dataFolder)
  }
}

function describe({ before, after, advice }: Compaction): string {
  if (advice !== undefined)
    return before === undefined ? `${advice}.` : `${advice}. It has ${toBytes(before ?? 0)} now.`
  return `${toBytes(before ?? 0)} before, ${toBytes(after ?? 0)} after.`
}
