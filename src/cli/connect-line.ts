import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'

/** The complete line that connects an agent; the token is made of URL-safe characters only. */
export function toConnectLine(mcpUrl: string, token: string): string {
  return `claude mcp add --transport http sallyport ${mcpUrl} --header "Authorization: Bearer ${token}"`
}

/** The line that makes a token, as it works from here. */
export function toTokenLine(dataFolder: string, cwd: string = process.cwd()): string {
  const program = existsSync(join(cwd, 'bin/sallyport.js')) ? 'npx sallyport' : 'sallyport'
  const isDefault = relative(cwd, dataFolder) === '.sallyport'
  return `${program} tokens create --agent my-agent${isDefault ? '' : ` --data ${dataFolder}`}`
}
