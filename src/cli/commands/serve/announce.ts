import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type ConfigProblem, connections, findConfigFile, readConfig } from '../../../config/config.ts'
import type { Config } from '../../../contract/config.ts'
import { findConfigWeakness, quote } from '../../../lib/file-trust.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'

export type Announcement = {
  readonly explicit: string | undefined
  readonly dataFolder: string
  readonly environment: NodeJS.ProcessEnv
  readonly cwd: string
  talk(line: string): void
}

/** Prints the configuration file, and on first use of a file in the current folder also the commands that it starts. */
export async function announceConfig({ explicit, dataFolder, environment, cwd, talk }: Announcement): Promise<void> {
  const file = findConfigFile({ explicit, environment, cwd, dataFolder })
  if (file === undefined || !existsSync(file)) return
  talk(`Configuration: ${toVisible(file)}`)
  const weakness = findConfigWeakness(file)
  if (weakness) {
    talk(`Warning: ${toVisible(weakness.message)}. Other users could run commands as this gateway. Correct it with:`)
    talk(`  ${toVisible(weakness.fix)}`)
  }
  const reading = await readConfig(file).catch(() => undefined)
  if (reading?.ok && reading.spellings.length > 0) talk(toSpellingNotice(file, reading.spellings))
  const named = explicit !== undefined || Boolean(environment.SALLYPORT_CONFIG)
  // The file may come from a foreign repository, and the user may not have read it yet.
  const firstUse = !named && !existsSync(join(dataFolder, 'sallyport.db'))
  const commands = firstUse && reading?.ok ? listCommands(reading.config) : []
  if (commands.length === 0) return
  talk('This configuration starts these commands with your rights:')
  for (const command of commands) talk(`  ${toVisible(command)}`)
}

function toSpellingNotice(file: string, spellings: readonly ConfigProblem[]): string {
  const used = `${countOf(spellings.length, 'key')} as other programs do`
  const [first] = spellings
  const example = first ? `, for example \`${first.key}\` in line ${first.line}` : ''
  return toVisible(`${file} spells ${used}${example}. How to write them: sallyport config check ${quote(file)}`)
}

function listCommands(config: Config): string[] {
  return connections(config).flatMap(({ id, definition }) =>
    definition.transport === 'stdio' && definition.enabled
      ? [`${id}: ${[definition.command, ...definition.args].join(' ')}`]
      : [],
  )
}
