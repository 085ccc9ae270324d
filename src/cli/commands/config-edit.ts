import { existsSync } from 'node:fs'
import { basename, extname } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import { toVisible } from '../../shared/visible.ts'
import { editText } from '../terminal/editor.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, type Context, type Run } from './command.ts'

const configOption = ['--config <file>', 'use this configuration file'] as const

type Found = { readonly file: string | undefined; readonly running: boolean; readonly places: readonly string[] }

export function addConfigFile(config: Command, run: Run): void {
  addCommand(config, run, {
    use: 'path',
    summary: 'print the configuration file in use and the paths that are searched',
    options: [configOption],
    examples: ['sallyport config path', 'sallyport config path --json'],
    input: z.object({ config: z.string().optional() }),
    async run(context, { config: named }) {
      const { terminal } = context
      const { file, running, places } = await findFile(context, named)
      const exists = file !== undefined && existsSync(file)
      terminal.answer({ file: file ?? null, exists, running, places }, () => toVisible(file ?? 'none'))
      terminal.talk(describeUse({ file, exists, running }))
      terminal.talk(['Paths searched, in this order:', ...places.map((place) => `  ${toVisible(place)}`)].join('\n'))
      return file === undefined ? exit.failed : exit.done
    },
  })

  addCommand(config, run, {
    use: 'edit',
    summary: 'open the configuration file in your editor (VISUAL or EDITOR) and check it before saving',
    options: [configOption, ['--yes', 'save without asking']],
    notes: ['A running gateway applies the saved file at once.'],
    examples: ['sallyport config edit', 'EDITOR="code --wait" sallyport config edit'],
    input: z.object({ config: z.string().optional(), yes: z.boolean().default(false) }),
    async run(context, { config: named, yes }) {
      const { file, running } = await findFile(context, named)
      if (file === undefined || !existsSync(file))
        throw new GatewayError(
          'config-unreadable',
          file ? `The configuration file ${file} does not exist` : 'The current folder has no configuration file',
        )
      return edit(context, { file, running, yes })
    },
  })
}

function describeUse({
  file,
  exists,
  running,
}: {
  file: string | undefined
  exists: boolean
  running: boolean
}): string {
  if (running) return 'The running gateway uses this file.'
  if (file === undefined) return 'No configuration file found.'
  return exists
    ? 'No running gateway uses this file. `sallyport serve` in this folder would use it.'
    : 'This file does not exist.'
}

async function edit(
  { terminal }: Context,
  { file, running, yes }: { file: string; running: boolean; yes: boolean },
): Promise<number> {
  const { formatProblem, parseConfig, saveText } = await import('../../config/config.ts')
  const { readFile } = await import('node:fs/promises')
  const before = await readFile(file, 'utf8')
  const saved = await editText<string, boolean>({
    terminal,
    yes,
    name: basename(file),
    text: before,
    comment: extname(file) === '.json' ? undefined : '#',
    check(text) {
      const reading = parseConfig(file, text)
      return reading.ok ? { value: text } : { problems: reading.problems.map(formatProblem) }
    },
    async save(text) {
      if ((await saveText({ file, text, expected: before })) === 'saved') return true
      throw new GatewayError('config-conflict', `${file} was changed by another program since it was opened`)
    },
  })
  if (!saved) {
    if (terminal.json) terminal.answer({ file, saved: false }, () => '')
    return exit.done
  }
  terminal.answer({ file, saved: true }, () => `Saved ${toVisible(file)}.`)
  if (running) terminal.talk('The running gateway applies the change.')
  return exit.done
}

/** `--config`, else the file of the gateway that runs on this machine, else the file that `serve` would use. */
async function findFile({ settings, request }: Context, named: string | undefined): Promise<Found> {
  const { findConfigFile, listConfigPlaces } = await import('../../config/config.ts')
  const place = { cwd: process.cwd(), dataFolder: settings.dataFolder }
  const places = listConfigPlaces(place)
  if (settings.url !== undefined && named === undefined) {
    const message = 'The configuration of a gateway on another machine cannot be opened here'
    throw new GatewayError('request-invalid', `${message}: remove --gateway and SALLYPORT_URL, or give --config FILE`)
  }
  const used =
    settings.url === undefined
      ? await request('Asking the gateway', (client) => client.config.show()).catch(unlessAway)
      : undefined
  const serveWould = findConfigFile({ explicit: named, environment: process.env, ...place })
  const file = named === undefined ? (used?.file ?? serveWould) : serveWould
  return { file, running: used !== undefined && used.file === file, places }
}

/** An unreachable gateway is not an error here: the file is searched as `serve` does. */
function unlessAway(error: unknown): undefined {
  const away: readonly string[] = ['unreachable', 'token-missing', 'forbidden', 'data-untrusted']
  if (!away.includes(toGatewayError(error).code)) throw error
  return undefined
}
