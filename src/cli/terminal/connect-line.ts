import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { quote } from '../../lib/file-trust.ts'

/** The complete line that connects an agent; the token is made of URL-safe characters only. */
export function toConnectLine(mcpUrl: string, token: string): string {
  return `claude mcp add --transport http sallyport ${mcpUrl} --header "Authorization: Bearer ${token}"`
}

/** A command of this program, as it works from the current folder. */
export function toCommandLine(words: string, dataFolder: string, cwd: string = process.cwd()): string {
  const isDefault = relative(cwd, dataFolder) === '.sallyport'
  return `${toProgram(cwd)} ${words}${isDefault ? '' : ` --data ${quote(dataFolder)}`}`
}

/** For programs that know only commands: it works from every folder. */
export function toStdioLine(dataFolder: string): string {
  return `${toAbsoluteProgram()} stdio --data ${quote(dataFolder)}`
}

/** Words with commands in them, such as a hint, as they can be copied in the folder of a clone: there is no `sallyport`. */
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

/** A package that was installed has no sources beside it. */
function isCheckout(): boolean {
  return existsSync(join(dirname(toScript()), '..', 'src'))
}

function toScript(): string {
  return resolve(process.argv[1] ?? '')
}
