import type { Argument, Command, Option } from 'commander'
import { ClientName, clientTitles } from '../../contract/client.ts'
import { toVisible } from '../../shared/visible.ts'
import { findAddress } from '../client/address.ts'
import { type Client, createClient } from '../client/client.ts'
import { toSettings } from '../client/settings.ts'
import { exit } from '../terminal/exit.ts'

/** The shell is blocked until this command ends. */
const mostMs = 1500
const requestMs = 1200

type Candidate = { readonly value: string; readonly description?: string | undefined }
type Source = (client: Client) => Promise<readonly Candidate[]>
type FixedSource = () => Promise<readonly Candidate[]> | readonly Candidate[]

/** Prints completions of the last word, each with a tab and a description. Errors print nothing: the user is typing. */
export async function complete(program: Command, words: readonly string[]): Promise<number> {
  const current = words.at(-1) ?? ''
  const place = findPlace(program, words.slice(0, -1))
  const candidates = place ? await listCandidates(place, current, words) : []
  const lines = candidates
    .filter(({ value }) => value.startsWith(current) && !/[\s\p{Cc}]/u.test(value))
    .map(({ value, description = '' }) => `${value}\t${toVisible(description.replace(/\s+/g, ' '))}`)
  // Without this timeout, a request without an answer would block the shell.
  const { promise, resolve } = Promise.withResolvers<void>()
  process.stdout.write(lines.map((line) => `${line}\n`).join(''), () => resolve())
  await promise
  process.exit(exit.done)
}

/** Position of the last word: its command, the number of arguments before it, and the option whose value it is. */
type Place = { readonly command: Command; readonly given: number; readonly option: Option | undefined }

/** Undefined after `--`, where the command of a server starts. */
function findPlace(program: Command, words: readonly string[]): Place | undefined {
  let command = program
  let given = 0
  let option: Option | undefined
  for (const word of words) {
    if (option) {
      option = undefined
      continue
    }
    if (word === '--') return undefined
    if (word.startsWith('-')) {
      const known = command.options.find(({ long, short }) => long === word || short === word)
      option = known && (known.required || known.optional) ? known : undefined
      continue
    }
    const next = command.commands.find((each) => each.name() === word)
    if (next) command = next
    else given += 1
  }
  return { command, given, option }
}

async function listCandidates(place: Place, current: string, words: readonly string[]): Promise<readonly Candidate[]> {
  const { command, option, given } = place
  if (option) return ask(byOption[option.long ?? ''], words)
  if (current.startsWith('-')) {
    return command.options
      .filter(({ hidden }) => !hidden)
      .map(({ long, short, description }) => ({ value: long ?? short ?? '', description }))
  }
  if (command.commands.length > 0 && given === 0) {
    // Commander has no public flag for hidden commands; names of our hidden commands start with two underscores.
    const shown = command.commands.filter((each) => !each.name().startsWith('__'))
    return shown.map((each) => ({ value: each.name(), description: each.summary() || each.description() }))
  }
  const argument: Argument | undefined = command.registeredArguments[given] ?? command.registeredArguments.at(-1)
  if (!argument || (given >= command.registeredArguments.length && !argument.variadic)) return []
  const fixed = fixedByArgument[toKey(command)]
  return fixed ? fixed() : ask(byArgument[toKey(command)], words)
}

function toKey(command: Command): string {
  const parent = command.parent?.parent ? `${command.parent.name()} ` : ''
  return `${parent}${command.name()}`
}

/** Names from the gateway; none if it does not run or does not answer in time. */
async function ask(source: Source | undefined, words: readonly string[]): Promise<readonly Candidate[]> {
  if (!source) return []
  const timeout = new Promise<readonly Candidate[]>((resolve) => setTimeout(resolve, mostMs, []).unref())
  const answer = findClient(words).then(source)
  return Promise.race([answer, timeout]).catch(() => [])
}

async function findClient(words: readonly string[]): Promise<Client> {
  const findValue = (flag: string) => (words.includes(flag) ? words[words.lastIndexOf(flag) + 1] : undefined)
  const gateway = findValue('--gateway')
  const options = { json: false, gateway, token: findValue('--token'), data: findValue('--data'), passwordStdin: false }
  return createClient(await findAddress(toSettings(options, process.env)), requestMs)
}

const servers: Source = async (client) =>
  (await client.servers.list()).items.map(({ name, title, description, state }) => ({
    value: name,
    description: title ?? description ?? state,
  }))
const tools: Source = async (client) =>
  (await client.tools.list({})).items.map(({ name, title, description }) => ({
    value: name,
    description: title ?? description,
  }))
const agents: Source = async (client) =>
  (await client.agents.list()).items.map(({ name, description }) => ({ value: name, description }))
const users: Source = async (client) =>
  (await client.users.list()).items.map(({ name, role }) => ({ value: name, description: role }))
const projects: Source = async (client) => (await client.projects.list()).items.map(({ name }) => ({ value: name }))
const sessions: Source = async (client) => (await client.sessions.list({})).items.map(({ name }) => ({ value: name }))
const secrets: Source = async (client) => (await client.secrets.list()).items.map(({ name }) => ({ value: name }))
const webhooks: Source = async (client) => (await client.webhooks.list()).items.map(({ name }) => ({ value: name }))
const approvals: Source = async (client) =>
  (await client.approvals.list({})).items.map(({ id, title, state }) => ({
    value: id,
    description: `${title} (${state})`,
  }))
const waiting: Source = async (client) =>
  (await client.approvals.list({ state: 'waiting' })).items.map(({ id, title }) => ({ value: id, description: title }))
const calls: Source = async (client) =>
  (await client.calls.list({})).items.map(({ id, tool, state }) => ({ value: id, description: `${tool} (${state})` }))
const grants: Source = async (client) =>
  (await client.grants.list({})).items.map(({ id, tools: which }) => ({ value: id, description: which }))
const tokens: Source = async (client) =>
  (await client.tokens.list()).items
    .filter(({ revokedAt }) => revokedAt === undefined)
    .map(({ id, agent, session }) => ({ value: id, description: agent ?? session }))
const principals: Source = async (client) =>
  (await agents(client)).map(({ value, description }) => ({ value: `agent:${value}`, description }))

const byOption: Readonly<Record<string, Source>> = {
  '--server': servers,
  '--without': servers,
  '--agent': agents,
  '--tool': tools,
  '--tools': tools,
  '--principal': principals,
  '--owner': users,
  '--as': users,
  '--user': users,
  '--project': projects,
  '--session': sessions,
  '--call': calls,
}

const ofServers = ['get', 'edit', 'validate', 'upgrade', 'risks', 'remove', 'enable', 'disable', 'reconnect', 'logs']

const byArgument: Readonly<Record<string, Source>> = {
  ...Object.fromEntries(ofServers.map((verb) => [`servers ${verb}`, servers])),
  'tools show': tools,
  'tools call': tools,
  'tools diff': tools,
  'tools accept': tools,
  'tools block': tools,
  'tools guide': servers,
  'tools pins': servers,
  'rules test': tools,
  'agents change': agents,
  'agents remove': agents,
  'users change': users,
  'users password': users,
  'users remove': users,
  'projects remove': projects,
  'sessions update': sessions,
  'sessions end': sessions,
  'secrets set': secrets,
  'secrets remove': secrets,
  'webhooks test': webhooks,
  'approvals show': approvals,
  'approvals approve': waiting,
  'approvals deny': waiting,
  'calls show': calls,
  'audit show': calls,
  'grants revoke': grants,
  'tokens revoke': tokens,
}

/** Arguments that need no gateway. */
const fixedByArgument: Readonly<Record<string, FixedSource>> = {
  connect: listConnectable,
  disconnect: listConnectable,
  export: () => ClientName.options.map((value) => ({ value, description: clientTitles[value] })),
  completion: () => ['bash', 'zsh', 'fish'].map((value) => ({ value })),
  explain: async () => {
    const { errorGroups, toSummary } = await import('../../contract/error-sections/error-sections.ts')
    return errorGroups.flatMap(({ codes }) => codes).map((value) => ({ value, description: toSummary(value) }))
  },
}

async function listConnectable(): Promise<Candidate[]> {
  const { ConnectableClient } = await import('./clients/target.ts')
  return ConnectableClient.options.map((value) => ({ value, description: clientTitles[value] }))
}
