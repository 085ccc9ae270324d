import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Environment } from './templates.ts'

export type ConfigPlaces = {
  /** The value of `--config`. */
  readonly explicit?: string
  readonly environment: Environment
  readonly cwd: string
  readonly dataFolder: string
}

const namesInFolder = ['sallyport.yaml', 'sallyport.yml', 'sallyport.json', 'sallyport.toml']

/** The file to use. One that was named is used even if it does not exist: reading it then says so. */
export function findConfigFile({ explicit, environment, cwd, dataFolder }: ConfigPlaces): string | undefined {
  const named = explicit ?? (environment.SALLYPORT_CONFIG || undefined)
  if (named !== undefined) return resolve(cwd, named)
  return listConfigPlaces({ cwd, dataFolder }).find((candidate) => existsSync(candidate))
}

/** Where a configuration is looked for that nobody named; the first one counts. */
export function listConfigPlaces({ cwd, dataFolder }: Pick<ConfigPlaces, 'cwd' | 'dataFolder'>): string[] {
  const candidates = [...namesInFolder.map((name) => join(cwd, name)), join(dataFolder, 'sallyport.yaml')]
  return candidates.map((candidate) => resolve(cwd, candidate))
}

/** Beside the configuration that a first start writes, so that editors know every setting, also offline. */
export const schemaFile = 'sallyport.schema.json'

/** What a first start writes. `demo` is the path of the demo server's program, where there is one. */
export function starterConfig({ demo, port = true }: { readonly demo?: string; readonly port?: boolean }): string {
  return `# yaml-language-server: $schema=${schemaFile}
# The configuration of this Sallyport gateway. A change is applied as soon as the file is saved;
# a mistake changes nothing and is reported with its line.
# Every setting: docs/reference/configuration.md. Check it with: npx sallyport config check

listen:
  host: 127.0.0.1
  ${port ? 'port: 4777' : '# port: 4777'}

# Environment variables that \${NAME} may read in command, args, env, url and headers.
environment: []

# The last rule that matches decides; without rules reads are allowed, writes and danger ask. For example:
#   - { tools: "github_*", risk: write, action: allow }
#   - { tools: "*_delete_*", action: deny }
rules: []

# A server on the network, with a token from the environment, would stand here like this:
#   github:
#     transport: http
#     url: https://api.githubcopilot.com/mcp/
#     headers: { Authorization: "Bearer \${GITHUB_TOKEN}" }
servers:${demo === undefined ? ' {}\n' : toDemoEntry(demo)}`
}

function toDemoEntry(demo: string): string {
  return `
  # A small server to try things out. Remove it when you have your own.
  demo:
    transport: stdio
    command: node
    args: [${JSON.stringify(demo)}]
    description: A demo server with a few harmless tools
`
}
