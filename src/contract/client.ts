import { z } from 'zod'

/** A program that keeps its own list of MCP servers in a configuration file. */
export const ClientName = z.enum([
  'claude-code',
  'claude-desktop',
  'cursor',
  'vscode',
  'opencode',
  'codex',
  'gemini-cli',
  'goose',
  'zed',
  'windsurf',
  'cline',
  'librechat',
])
export type ClientName = z.infer<typeof ClientName>

export const clientTitles: Readonly<Record<ClientName, string>> = {
  'claude-code': 'Claude Code',
  'claude-desktop': 'Claude Desktop',
  cursor: 'Cursor',
  vscode: 'VS Code',
  opencode: 'OpenCode',
  codex: 'Codex',
  'gemini-cli': 'Gemini CLI',
  goose: 'Goose',
  zed: 'Zed',
  windsurf: 'Windsurf',
  cline: 'Cline',
  librechat: 'LibreChat',
}
