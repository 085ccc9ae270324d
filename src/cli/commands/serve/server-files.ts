import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Gateway } from '../../../gateway/gateway.ts'
import { adminToken } from '../../../identity/identity.ts'
import { quote } from '../../../lib/file-trust.ts'
import { toVisible } from '../../../shared/visible.ts'
import { renderServerFile } from '../../terminal/server-file.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const fileName = 'mcp-servers.json'

/** The first that exists is used: the one of the working folder, then the user's. `.sallyport` of the working folder is not read. */
export function listServerFiles(cwd = process.cwd(), home = homedir()): string[] {
  return [...new Set([join(cwd, fileName), join(home, '.sallyport', fileName)])]
}

/** Configuration files of other programs, and of Sallyport in a format that comes later in the search. */
const unread = [
  '.mcp.json',
  'mcp.json',
  'librechat.yaml',
  'claude_desktop_config.json',
  '.cursor/mcp.json',
  '.vscode/mcp.json',
  'opencode.json',
  'opencode.jsonc',
]
const own = ['sallyport.yaml', 'sallyport.yml', 'sallyport.json', 'sallyport.toml']

/** One line for configuration files in the working folder that this start does not read. */
export function noteUnread(cwd: string, talk: (line: string) => void): void {
  const [used, ...others] = own.filter((name) => existsSync(join(cwd, name)))
  if (used !== undefined && others.length > 0)
    talk(
      `${others.join(', ')} is not read: ${used} comes first. Remove one, or name the file: sallyport serve --config FILE`,
    )
  const foreign = unread.filter((name) => existsSync(join(cwd, name)))
  const [first] = foreign
  if (first === undefined) return
  const verb =
    foreign.length === 1
      ? 'is a configuration of another program and is'
      : 'are configurations of other programs and are'
  talk(`${foreign.join(', ')} ${verb} not read. To take over its servers: sallyport import ${quote(first)}`)
}

type Asking = { readonly terminal: Terminal; readonly gateway: Gateway; readonly signal: AbortSignal }

/** Asks at a terminal about programs that nobody has confirmed. They do not run while the question is open. */
export async function askForTrust({ terminal, gateway, signal }: Asking): Promise<void> {
  const waiting = gateway.serverFiles.list().find(({ state }) => state === 'waiting')
  if (waiting?.hash === undefined || !terminal.interactive) return
  const { file, hash } = waiting
  terminal.talk(renderServerFile(terminal, waiting))
  const { confirm, isCancel } = await import('@clack/prompts')
  const message = 'Start these programs with your rights, and send them these variables?'
  const agreed = await confirm({ message, initialValue: false, output: process.stderr, signal }).catch(() => false)
  if (signal.aborted) return
  // The prompt has taken Ctrl+C from the gateway, which it stops.
  if (isCancel(agreed)) return void process.kill(process.pid, 'SIGINT')
  if (agreed !== true) return terminal.talk(`Not confirmed. Later: sallyport config trust ${quote(file)}`)
  try {
    await gateway.serverFiles.trust(adminToken, { file, hash })
    terminal.talk('Confirmed.')
  } catch (error) {
    terminal.talk(`Not confirmed: ${toVisible(error instanceof Error ? error.message : String(error))}`)
  }
}
