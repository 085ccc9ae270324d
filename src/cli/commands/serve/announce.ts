import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { connections, findConfigFile, readConfig } from '../../../config/config.ts'
import { findConfigWeakness } from '../../../lib/file-trust.ts'
import { toVisible } from '../../../shared/visible.ts'

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
  const named = explicit !== undefined || Boolean(environment.SALLYPORT_CONFIG)
  // The file may come from a foreign repository, and the user may not have read it yet.
  const firstUse = !named && !existsSync(join(dataFolder, 'sallyport.db'))
  const commands = firstUse ? await listCommands(file) : []
  if (commands.length === 0) return
  talk('This configuration starts these commands with your rights:')
  for (const command of commands) talk(`  ${toVisible(command)}`)
}

async function listCommands(file: string): Promise<string[]> {
  const reading = await readConfig(file).catch(() => undefined)
  if (!reading?.ok) return []
  return connections(reading.config).flatMap(({ id, definition }) =>
    definition.transport === 'stdio' && definition.enabled
      ? [`${id}: ${[definition.command, ...definition.args].join(' ')}`]
      : [],
  )
}
