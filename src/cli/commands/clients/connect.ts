import type { Command } from 'commander'
import { z } from 'zod'
import { clientTitles } from '../../../contract/client.ts'
import { GatewayError } from '../../../contract/errors.ts'
import { AgentName, type NewToken } from '../../../contract/token.ts'
import { getCodec, removeServer, type StatedServer, writeServers } from '../../../formats/formats.ts'
import { toChangedLines } from '../../../shared/line-difference.ts'
import { toVisible } from '../../../shared/visible.ts'
import type { Client } from '../../client/client.ts'
import { type ConnectionRecord, createConnections, toHash } from '../../clients/connection.ts'
import { type ClientFile, invalid, readClientFile, writeClientFile } from '../../clients/file.ts'
import { confirm } from '../../terminal/confirm.ts'
import { toStdioCommand } from '../../terminal/connect-line.ts'
import { exit } from '../../terminal/exit.ts'
import { addCommand, type Context, type Run } from '../command.ts'
import { type ConnectableClient, entryName, programsNote, TargetInput, targetOptions, toTarget } from './target.ts'

const Input = TargetInput.extend({
  agent: AgentName.optional(),
  env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
    .optional(),
  dryRun: z.boolean().default(false),
  yes: z.boolean().default(false),
})

export function addConnect(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'connect <client>',
    summary: 'add the gateway to the configuration file of a program, with a new token',
    options: [
      ...targetOptions,
      ['--agent <name>', 'agent that makes the calls; a missing agent is added (default: the name of the program)'],
      ['--env <name>', 'write a reference to this environment variable, and print the token'],
      ['--dry-run', 'show the change without making it'],
      ['--yes', 'do not ask'],
    ],
    notes: [
      programsNote,
      '',
      'Comments and other entries of the file are kept. `disconnect` restores the file and revokes the token.',
    ],
    examples: [
      'sallyport connect claude-code',
      'sallyport connect codex --dry-run',
      'sallyport connect cursor --project --env SALLYPORT_AGENT_TOKEN',
    ],
    input: Input,
    run: connect,
  })
}

type Wanted = z.infer<typeof Input>

async function connect(context: Context, wanted: Wanted): Promise<number> {
  const { terminal, settings, request } = context
  const { client, env, dryRun, yes } = wanted
  const agent = wanted.agent ?? client
  const path = toTarget(wanted)
  const connections = createConnections(settings)
  const before = readClientFile(path)
  const known = connections.find(client, before.path)
  const entry = await toEntry(context, { client, agent, env })
  const preview = edit(client, before, entry.toDefinition(entry.hasToken ? shownToken : ''))
  const { path: file } = before
  const lines = toDifference(before.text ?? '', preview)
  terminal.talk([`${toVisible(file)}:`, ...lines].map(toVisible).join('\n'))
  if (dryRun) {
    terminal.answer({ client, file, agent, written: false }, () => 'Nothing was changed.')
    return exit.done
  }
  if (!yes && !(await confirm(terminal, `Add Sallyport to ${clientTitles[client]}?`))) return exit.failed
  const token = entry.needsToken
    ? await request('Creating the token', (api) => api.tokens.create({ agent }))
    : undefined
  try {
    const text = edit(client, before, entry.toDefinition(token?.token ?? ''))
    const record = toRecord({ client, file, agent, token, before, known, text })
    const backup = await connections.save(record)
    await writeClientFile(before, text, { hasToken: entry.hasToken })
    terminal.talk(`The file before the change is in ${toVisible(backup)}.`)
  } catch (error) {
    await (known === undefined ? connections.remove(client, file) : connections.save(known))
    if (token !== undefined) await revoke(request, token.id)
    throw error
  }
  if (known?.token !== undefined) await revoke(request, known.token)
  describeNext(context, wanted, { agent, file, token })
  return exit.done
}

const shownToken = 'TOKEN'

type Entry = {
  readonly needsToken: boolean
  /** The token is in the file, not in a variable. */
  readonly hasToken: boolean
  toDefinition(token: string): StatedServer
}

/** Milliseconds for which a call is held while a person decides, with a margin. */
const callTime = 60_000

async function toEntry(
  { settings, request }: Context,
  { client, agent, env }: { client: ConnectableClient; agent: string; env: string | undefined },
): Promise<Entry> {
  if (client === 'claude-desktop') {
    if (env !== undefined)
      throw new GatewayError('request-invalid', 'Claude Desktop cannot read environment variables: leave --env out')
    const { url, dataFolder } = settings
    const words = ['--agent', agent]
    if (url === undefined) {
      const local = toStdioCommand([...words, '--data', dataFolder])
      return { needsToken: false, hasToken: false, toDefinition: () => ({ transport: 'stdio', ...local }) }
    }
    const toDefinition = (token: string): StatedServer => {
      const env = { SALLYPORT_URL: url, SALLYPORT_TOKEN: token }
      return { transport: 'stdio', ...toStdioCommand(words), env }
    }
    return { needsToken: true, hasToken: true, toDefinition }
  }
  const status = await request('Asking the gateway', (api: Client) => api.status())
  if (!('url' in status)) throw new GatewayError('forbidden', 'This token may not see the address of the gateway')
  const url = `${status.url.replace(/\/$/, '')}/mcp`
  const toDefinition = (token: string): StatedServer => ({
    transport: 'http',
    url,
    headers: { Authorization: `Bearer ${env === undefined ? token : `\${${env}}`}` },
    timeout: { call: callTime },
  })
  return { needsToken: true, hasToken: env === undefined, toDefinition }
}

function edit(client: ConnectableClient, { path, text = '' }: ClientFile, definition: StatedServer): string {
  const writing = writeServers(getCodec(client), text, [{ name: entryName, definition }])
  if (writing.ok) return writing.text
  throw invalid(`${path} cannot be edited: ${writing.message}`)
}

/** Only changed lines, and no token: the lines around them are those of other entries and may contain secrets. */
function toDifference(before: string, after: string): string[] {
  const lines = (text: string) => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
  const changed = toChangedLines(lines(before), lines(after)).filter((line) => /^ {2}[+-] /.test(line))
  const tokens = /\bsp_[0-9a-z]{10}_[\w-]{43}|(?<=Bearer )(?!TOKEN|\$|\{env)[^"'\s]+/g
  return changed.map((line) => line.replace(tokens, '[secret]'))
}

type Made = {
  readonly client: ConnectableClient
  readonly file: string
  readonly agent: string
  readonly token: NewToken | undefined
  readonly before: ClientFile
  readonly known: ConnectionRecord | undefined
  readonly text: string
}

/** After a second `connect`, `disconnect` restores the text from before the first one. */
function toRecord({ client, file, agent, token, before, known, text }: Made): ConnectionRecord {
  const base = { client, file, agent, token: token?.id, written: toHash(text) }
  if (known === undefined || before.text === undefined) return { ...base, before: before.text, mode: before.mode }
  if (toHash(before.text) === known.written) return { ...base, before: known.before, mode: known.mode }
  const removal = removeServer(getCodec(client), before.text, entryName)
  return { ...base, before: removal.ok ? removal.text : before.text, mode: before.mode }
}

/** Returns false if the token may still be valid: the gateway was not reached, or refused. */
export async function revoke(request: Context['request'], id: string): Promise<boolean> {
  try {
    await request('Revoking the token', async (api) => {
      const { items } = await api.tokens.list()
      const isValid = items.some((token) => token.id === id && token.revokedAt === undefined)
      if (isValid) await api.tokens.revoke({ params: { id } })
    })
    return true
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}

type Connected = { readonly agent: string; readonly file: string; readonly token: NewToken | undefined }

function describeNext(
  { terminal }: Context,
  { client, env, project }: Wanted,
  { agent, file, token }: Connected,
): void {
  const title = clientTitles[client]
  const shown = env === undefined ? undefined : token?.token
  terminal.answer({ client, file, agent, written: true, ...(shown && { token: shown }) }, () => {
    return shown ?? `Connected ${title} as the agent ${toVisible(agent)}.`
  })
  if (shown !== undefined) terminal.talk(`Set ${env} to this token where ${title} starts. It cannot be shown again.`)
  if (shown === undefined && project && token !== undefined) {
    terminal.talk('The file contains the token: do not commit it. With --env NAME it would contain a variable.')
  }
  terminal.talk(`Restart ${title} to use the gateway.`)
  terminal.next(`sallyport disconnect ${client}${project ? ' --project' : ''}`)
}
