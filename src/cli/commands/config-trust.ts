import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import type { ServerFile } from '../../contract/server-file.ts'
import { toVisible } from '../../shared/visible.ts'
import { confirm, talkPaged } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import { renderServerFile } from '../terminal/server-file.ts'
import { addCommand, type Run } from './command.ts'

export function addConfigTrust(config: Command, run: Run): void {
  addCommand(config, run, {
    use: 'trust <file>',
    summary: 'show the servers of an mcp-servers.json, and let the gateway start them',
    options: [
      ['--yes', 'confirm without asking'],
      ['--hash <hash>', 'confirm only the content with this hash, for scripts that have looked at it'],
    ],
    notes: ['Without a terminal, --yes or --hash is needed: what would start is printed, and nothing is confirmed.'],
    examples: ['sallyport config trust mcp-servers.json', 'sallyport config trust mcp-servers.json --json'],
    input: z.object({ file: z.string(), yes: z.boolean().default(false), hash: z.string().optional() }),
    async run({ terminal, request }, { file: named, yes, hash }) {
      const { items } = await request('Asking the gateway', (client) => client.config.files())
      const found = items.find(({ file }) => file === named || file === toPath(named))
      if (found === undefined) throw notRead(named, items)
      if (found.state === 'refused')
        throw new GatewayError('config-unreadable', found.reason ?? `${found.file} cannot be used`, {
          file: found.file,
        })
      // Whoever did not see all of it cannot confirm it.
      const seen = terminal.json || (await talkPaged(terminal, renderServerFile(terminal, found)))
      if (found.hash === undefined) {
        terminal.answer(found, () => `${toVisible(found.file)} is confirmed and in use.`)
        return exit.done
      }
      const wanted = hash ?? found.hash
      const agreed = yes || hash !== undefined || (terminal.interactive && seen && (await confirm(terminal, question)))
      if (!agreed) {
        terminal.answer(found, () => 'Nothing was confirmed.')
        if (!terminal.interactive) terminal.next(`sallyport config trust ${named} --hash ${found.hash}`)
        return exit.waiting
      }
      const trusted = await request('Confirming', (client) => client.config.trust({ file: found.file, hash: wanted }))
      terminal.answer(trusted, () => `Confirmed. The gateway uses the servers of ${toVisible(trusted.file)}.`)
      return exit.done
    },
  })
}

const question = 'Start these programs with the rights of the gateway, and send them these variables?'

function notRead(named: string, items: readonly ServerFile[]): GatewayError {
  const [read] = items
  const other = read ? `it reads ${read.file}` : 'it reads mcp-servers.json of its working folder, or of ~/.sallyport'
  return new GatewayError('request-invalid', `The gateway does not read ${named}; ${other}`, { file: named })
}

/** The gateway names the path without links. */
function toPath(named: string): string {
  try {
    return realpathSync(named)
  } catch {
    return resolve(named)
  }
}
