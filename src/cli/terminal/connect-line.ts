import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { quote } from '../../lib/file-trust.ts'

/** The command that connects Claude Code. The token needs no quoting: it contains only URL-safe characters. */
export function toConnectLine(mcpUrl: string, token: string): string {
  return `claude mcp add --transport http sallyport ${mcpUrl} --header "Authorization: Bearer ${token}"`
}

/** A command line of this program that works in the current folder. */
export function toCommandLine(words: string, dataFolder: string, cwd: string = process.cwd()): string {
  const isDefault = relative(cwd, dataFolder) === '.sallyport'
  return `${toProgram(cwd)} ${words}${isDefault ? '' : ` --data ${quote(dataFolder)}`}`
}

/** The `stdio` command line for MCP clients; it works in every folder. */
export function toStdioLine(dataFolder: string): string {
  return `${toAbsoluteProgram()} stdio --data ${quote(dataFolder)}`
}

/** The `stdio` command of a data folder, for the file of an MCP client. */
export function toStdioCommand(words: readonly string[]): { command: string; args: string[] } {
  return { command: process.execPath, args: [toScript(), 'stdio', ...words] }
}

/** In a clone of the repository, replaces `sallyport` by `npx sallyport` in texts, so that commands can be copied. */
export function toRunnable(text: string, cwd: string = process.cwd()): string {
  return isClone(cwd) ? text.replace(/(?<!npx )\bsallyport (?=[a-z-]+(?![\w:-]))/g, 'npx sallyport ') : text
}

function isClone(cwd: string): boolean {
  return existsSync(join(cwd, 'bin/sallyport.js')) && existsSync(join(cwd, 'src'))
}

function toProgram(cwd: string): string {
  if (isClone(cwd)) return 'npx sallyport'
  return isCheckout() ? toAbsoluteProgram() : 'sallyport'
}

function toAbsoluteProgram(): string {
  return [process.execPath, toScript()].map(quote).join(' ')
}

/** An installed package contains no sources. */
function isCheckout(): boolean {
  return existsSync(join(dirname(toScript()), '..', 'src'))
}

function toScript(): string {
  return resolve(process.argv[1] ?? '')
}
