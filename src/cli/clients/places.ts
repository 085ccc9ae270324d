import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ClientName } from '../../contract/client.ts'

export type Machine = {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

export function thisMachine(): Machine {
  return { platform: process.platform, home: homedir(), env: process.env, cwd: process.cwd() }
}

/** The configuration file of a program for this user; for some programs the first that exists of several. */
export function toUserFile(client: ClientName, machine: Machine): string {
  const { home, env } = machine
  const candidates: Readonly<Record<ClientName, readonly [string, ...string[]]>> = {
    'claude-code': [join(env.CLAUDE_CONFIG_DIR || home, '.claude.json')],
    'claude-desktop': [join(toAppData(machine), claudeFolder(machine), 'claude_desktop_config.json')],
    cursor: [join(home, '.cursor', 'mcp.json')],
    vscode: [join(toAppData(machine), 'Code', 'User', 'mcp.json')],
    opencode: both(join(toConfigHome(machine), 'opencode', 'opencode')),
    codex: [join(env.CODEX_HOME || join(home, '.codex'), 'config.toml')],
    'gemini-cli': [join(home, '.gemini', 'settings.json')],
    goose: [toGooseFile(machine)],
    zed: [
      join(
        machine.platform === 'win32' ? toAppData(machine) : toConfigHome(machine),
        zedFolder(machine),
        'settings.json',
      ),
    ],
    windsurf: [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
    cline: [
      join(
        toAppData(machine),
        'Code',
        'User',
        'globalStorage',
        'saoudrizwan.claude-dev',
        'settings',
        'cline_mcp_settings.json',
      ),
    ],
    librechat: [resolve(machine.cwd, 'librechat.yaml')],
  }
  return firstExisting(candidates[client])
}

/** The configuration file of a program in the current folder; undefined if the program reads none there. */
export function toProjectFile(client: ClientName, { cwd }: Machine): string | undefined {
  const candidates: Partial<Readonly<Record<ClientName, readonly [string, ...string[]]>>> = {
    'claude-code': [join(cwd, '.mcp.json')],
    cursor: [join(cwd, '.cursor', 'mcp.json')],
    vscode: [join(cwd, '.vscode', 'mcp.json')],
    opencode: both(join(cwd, 'opencode')),
    codex: [join(cwd, '.codex', 'config.toml')],
    'gemini-cli': [join(cwd, '.gemini', 'settings.json')],
    zed: [join(cwd, '.zed', 'settings.json')],
    librechat: [join(cwd, 'librechat.yaml')],
  }
  const found = candidates[client]
  return found && firstExisting(found)
}

function both(path: string): [string, string] {
  return [`${path}.json`, `${path}.jsonc`]
}

function firstExisting(candidates: readonly [string, ...string[]]): string {
  return candidates.find((file) => existsSync(file)) ?? candidates[0]
}

function toConfigHome({ home, env }: Machine): string {
  return env.XDG_CONFIG_HOME || join(home, '.config')
}

/** Where programs with a window keep their settings. */
function toAppData(machine: Machine): string {
  const { platform, home, env } = machine
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  return platform === 'win32' ? env.APPDATA || join(home, 'AppData', 'Roaming') : toConfigHome(machine)
}

function claudeFolder({ platform }: Machine): string {
  return platform === 'linux' ? 'claude' : 'Claude'
}

function zedFolder({ platform }: Machine): string {
  return platform === 'win32' ? 'Zed' : 'zed'
}

function toGooseFile(machine: Machine): string {
  if (machine.platform === 'win32') return join(toAppData(machine), 'Block', 'goose', 'config', 'config.yaml')
  return join(toConfigHome(machine), 'goose', 'config.yaml')
}
