import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { installOnDemand, type OnDemandPackage, onDemandPath } from '../../scripts/on-demand.ts'
import type { Fields } from '../fixtures/lib/json-rpc.ts'
import { guideBlock, guideJson } from './guide.ts'

/** Where an agent runs: a home and a working folder of its own, and the two addresses that it knows. */
export type Place = { readonly home: string; readonly work: string; readonly modelUrl: string; readonly mcpUrl: string }

/** How it is started there, and the files that it finds. */
export type Start = {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly files: Readonly<Record<string, string>>
}

export type AgentProgram = {
  readonly title: string
  readonly package: OnDemandPackage
  /** Without it there is no program for this machine: npm leaves out silently what the registry lacks. */
  readonly needs: string
  /** Its name for `sallyport connect`, and the words that start it. */
  readonly client: 'opencode' | 'claude-code' | 'codex' | 'gemini-cli'
  readonly words: readonly string[]
  /** What it does when the gateway says that the list has changed: it lists again, or not before its next run. */
  readonly listsAgain: boolean
  /** When the gateway was started again: it opens a new session and asks again, has none to lose, or tells the model. */
  readonly afterRestart: 'renews' | 'stateless' | 'tells'
  start(place: Place): Start
}

const prompt = 'go'

const opencodePackage = { name: 'opencode-ai', version: '1.18.33' }
/** The build for older processors runs on all; there is one for Intel's only. */
const opencodeBuild = `opencode-${process.platform}-${process.arch}${process.arch === 'x64' ? '-baseline' : ''}`

const opencodeProgram = onDemandPath(opencodePackage, opencodeBuild, 'bin', 'opencode')

const opencode: AgentProgram = {
  title: 'OpenCode 1.18.33',
  package: opencodePackage,
  needs: opencodeProgram,
  client: 'opencode',
  words: [opencodeProgram],
  listsAgain: true,
  afterRestart: 'renews',
  start({ work, modelUrl, mcpUrl }) {
    const model = { name: 'scripted', tool_call: true, limit: { context: 100_000, output: 10_000 } }
    const scripted = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: `${modelUrl}/v1`, apiKey: 'none' },
      models: { scripted: model },
    }
    const settings = {
      ...guideJson('OpenCode', mcpUrl),
      autoupdate: false,
      share: 'disabled',
      model: 'scripted/scripted',
      small_model: 'scripted/scripted',
      enabled_providers: ['scripted'],
      provider: { scripted },
    }
    const quiet = ['MODELS_FETCH', 'AUTOUPDATE', 'LSP_DOWNLOAD', 'DEFAULT_PLUGINS', 'SHARE']
    return {
      command: this.needs,
      args: ['run', '--format', 'json', prompt],
      env: { OPENCODE_PURE: '1', ...Object.fromEntries(quiet.map((name) => [`OPENCODE_DISABLE_${name}`, '1'])) },
      files: { [join(work, 'opencode.json')]: toJson(settings) },
    }
  },
}

const claudePackage = { name: '@anthropic-ai/claude-code', version: '2.1.325' }

const claudeProgram = onDemandPath(claudePackage, `${claudePackage.name}-${process.platform}-${process.arch}`, 'claude')

const claudeCode: AgentProgram = {
  title: 'Claude Code 2.1.325',
  package: claudePackage,
  needs: claudeProgram,
  client: 'claude-code',
  words: [claudeProgram],
  listsAgain: true,
  afterRestart: 'stateless',
  start({ work, modelUrl, mcpUrl }) {
    const file = join(work, '.mcp.json')
    return {
      command: this.needs,
      args: ['-p', prompt, '--mcp-config', file, '--strict-mcp-config', '--allowedTools', 'mcp__sallyport'],
      env: {
        ANTHROPIC_BASE_URL: modelUrl,
        ANTHROPIC_API_KEY: 'none',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        ENABLE_TOOL_SEARCH: 'false',
      },
      files: { [file]: toJson(guideJson('Claude Code', mcpUrl)) },
    }
  },
}

const codexPackage = { name: '@openai/codex', version: '0.166.0' }

const codexProgram = onDemandPath(codexPackage, codexPackage.name, 'bin', 'codex.js')

const codex: AgentProgram = {
  title: 'Codex 0.166.0',
  package: codexPackage,
  needs: onDemandPath(codexPackage, `${codexPackage.name}-${process.platform}-${process.arch}`),
  client: 'codex',
  words: [process.execPath, codexProgram],
  listsAgain: false,
  afterRestart: 'renews',
  start({ home, modelUrl, mcpUrl }) {
    const settings = `model = "scripted"
model_provider = "scripted"
approval_policy = "never"

[analytics]
enabled = false

[features]
plugins = false
apps = false

[model_providers.scripted]
name = "scripted"
base_url = "${modelUrl}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"

${guideBlock('Codex', 'toml', mcpUrl)}`
    return {
      command: process.execPath,
      args: [codexProgram, 'exec', '--skip-git-repo-check', '--json', prompt],
      env: { SCRIPTED_KEY: 'none' },
      files: { [join(home, '.codex', 'config.toml')]: settings },
    }
  },
}

const geminiPackage = { name: '@google/gemini-cli', version: '0.61.0' }

const geminiProgram = onDemandPath(geminiPackage, geminiPackage.name, 'bundle', 'gemini.js')

const geminiCli: AgentProgram = {
  title: 'Gemini CLI 0.61.0',
  package: geminiPackage,
  needs: geminiProgram,
  client: 'gemini-cli',
  words: [process.execPath, geminiProgram],
  listsAgain: true,
  afterRestart: 'tells',
  start({ home, modelUrl, mcpUrl }) {
    const settings = {
      ...guideJson('Gemini CLI', mcpUrl),
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { disableAutoUpdate: true, enableAutoUpdate: false },
      privacy: { usageStatisticsEnabled: false },
    }
    return {
      command: process.execPath,
      args: [this.needs, '--model', 'scripted', '--prompt', prompt],
      env: { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: modelUrl, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
      files: { [join(home, '.gemini', 'settings.json')]: toJson(settings) },
    }
  },
}

export const agents: readonly AgentProgram[] = [opencode, claudeCode, codex, geminiCli]

/** Without the scripts of packages: none of them needs its own, and none has to be approved. */
export async function install({ package: wanted, needs }: AgentProgram): Promise<void> {
  await installOnDemand(wanted)
  if (existsSync(needs)) return
  throw new Error(`${wanted.name}@${wanted.version} came without its program for this machine, ${needs}`)
}

function toJson(settings: Fields): string {
  return `${JSON.stringify(settings, null, 2)}\n`
}
