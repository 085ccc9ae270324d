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

/** The configuration file to use. A file given explicitly is returned even if it does not exist; reading it then fails. */
export function findConfigFile({ explicit, environment, cwd, dataFolder }: ConfigPlaces): string | undefined {
  const named = explicit ?? (environment.SALLYPORT_CONFIG || undefined)
  if (named !== undefined) return resolve(cwd, named)
  return listConfigPlaces({ cwd, dataFolder }).find((candidate) => existsSync(candidate))
}

/** The paths where a configuration is searched if none was given. The first existing file is used. */
export function listConfigPlaces({ cwd, dataFolder }: Pick<ConfigPlaces, 'cwd' | 'dataFolder'>): string[] {
  const candidates = [...namesInFolder.map((name) => join(cwd, name)), join(dataFolder, 'sallyport.yaml')]
  return candidates.map((candidate) => resolve(cwd, candidate))
}

/** The first start writes this schema next to the configuration, so that editors know every setting without a network. */
export const schemaFile = 'sallyport.schema.json'

/** The configuration that the first start writes. `demo` is the path of the demo server's program, if there is one. */
export function starterConfig({ demo, port = true }: { readonly demo?: string; readonly port?: boolean }): string {
  return `# yaml-language-server: $schema=${schemaFile}
# The configuration of this Sallyport gateway. A change is applied as soon as the file is saved;
# a file with a mistake is not applied, and the mistake is reported with its line.
# Every setting: docs/reference/configuration.md. Check it with: npx sallyport config check

listen:
  host: 127.0.0.1
  ${port ? 'port: 4777' : '# port: 4777'}

# Environment variables that \${NAME} may read in command, args, env, url and headers.
environment: []

# The last rule that matches decides; without rules, reads are allowed, and writes and danger require approval. For example:
#   - { tools: "github_*", risk: write, action: allow }
#   - { tools: "*_delete_*", action: deny }
rules: []

# Example of a server on the network, with a token from the environment:
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
