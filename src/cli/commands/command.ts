import { type Argument, type Command, Option } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import type { Address } from '../client/address.ts'
import type { Client } from '../client/client.ts'
import { type Access, createAccess } from '../client/person.ts'
import { GlobalOptions, type Settings, toSettings } from '../client/settings.ts'
import { createTerminal, type Spinner, type Terminal } from '../terminal/terminal.ts'

export type Context = {
  readonly terminal: Terminal
  readonly settings: Settings
  /** Address of the gateway, with the token or the cookie to send. */
  address(): Promise<Address>
  /** Calls the gateway and shows a spinner until the answer arrives. */
  request<Result>(
    doing: string,
    work: (client: Client, spinner: Spinner) => Promise<Result>,
    deadline?: number,
  ): Promise<Result>
}

/** `many`: the option may be repeated, and its values are collected. */
export type OptionSpec = readonly [flags: string, description: string, many?: 'many']

export type CommandSpec<Input extends z.ZodType> = {
  /** Name and arguments as help prints them, such as `get <name>`. */
  readonly use: string
  readonly summary: string
  readonly options?: readonly OptionSpec[]
  /** Lines that help prints before the examples. */
  readonly notes?: readonly string[]
  readonly examples: readonly string[]
  /** Not shown in help. */
  readonly hidden?: boolean
  /** Takes the words after `--` as its input `command`. */
  readonly takesCommand?: boolean
  /** Schema of the arguments and options by name. */
  readonly input: Input
  /** Returns the exit code. */
  run(context: Context, input: z.output<Input>): Promise<number>
}

/** One run of the program: the words after `--`, and the exit code that a command returned. */
export type Run = { code: number; readonly trailing: readonly string[] }

const seconds = 1000
export const patience = { usual: 30 * seconds, connecting: 660 * seconds, calling: 660 * seconds } as const

const globalOptions: readonly OptionSpec[] = [
  ['--json', 'print one JSON document to standard output'],
  ['--gateway <url>', 'address of the gateway (SALLYPORT_URL)'],
  ['--token <token>', 'token for the gateway (SALLYPORT_TOKEN)'],
  ['--data <folder>', 'data folder of a gateway on this machine (SALLYPORT_DATA)'],
  ['--as <user>', 'sign in as this user, for this command only'],
  ['--password-stdin', 'read the password from the first line of standard input'],
]
/** An older name of --gateway, except where a command has its own --url. */
const aliasOption: OptionSpec = ['--url <url>', 'the same as --gateway']
const globalHeading = 'Global options:'

export function addCommand<Input extends z.ZodType>(parent: Command, run: Run, spec: CommandSpec<Input>): void {
  const command = parent
    .command(spec.use, { hidden: spec.hidden ?? false })
    .summary(spec.summary)
    .description(spec.summary)
  for (const option of spec.options ?? []) command.addOption(toOption(option))
  if (spec.notes) command.addHelpText('after', `\n${spec.notes.join('\n')}`)
  addGlobalOptions(command)
  addExamples(command, spec.examples)
  if (spec.takesCommand) command.usage(`${spec.use.split(' ').slice(1).join(' ')} [options] [-- COMMAND ARGUMENTS...]`)
  command.action(async () => {
    const { terminal, settings } = toFrame(command)
    if (run.trailing.length > 0 && !spec.takesCommand)
      throw new UsageError('This command takes no words after --', command)
    const input = toInput(command, spec.input, spec.takesCommand ? { command: run.trailing } : {})
    const access = createAccess(terminal, settings)
    try {
      const { address } = access
      run.code = await spec.run({ terminal, settings, address, request: createRequest(terminal, access) }, input)
    } finally {
      await access.close()
    }
  })
}

/** Added to every level, so that global options are allowed before and after the command. A command's own option wins. */
export function addGlobalOptions(command: Command): void {
  for (const spec of [...globalOptions, aliasOption]) {
    const option = toOption(spec)
      .helpGroup(globalHeading)
      .hideHelp(spec === aliasOption)
    if (!command.options.some((own) => own.long === option.long)) command.addOption(option)
  }
  command.addHelpText('after', `\n${globalHelp}`)
}

const globalHelp = [
  globalHeading,
  ...globalOptions.map(([flags, description]) => `  ${flags.padEnd(18)}${description}`),
].join('\n')

/** Hides global options from Commander's list of options: they are printed separately, after the notes of the command. */
export const helpConfiguration = {
  groupItems<Item>(_unsorted: Item[], visible: Item[], toGroup: (item: Item) => string): Map<string, Item[]> {
    const groups = new Map<string, Item[]>()
    for (const item of visible) {
      const group = toGroup(item)
      if (group !== globalHeading) groups.set(group, [...(groups.get(group) ?? []), item])
    }
    return groups
  },
  optionDescription: (option: Option) => option.description,
  /** Without `[options]`, because every command has options. */
  subcommandTerm: (command: Command) => [command.name(), ...command.registeredArguments.map(toArgumentTerm)].join(' '),
}

function toArgumentTerm(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

export function addExamples(command: Command, examples: readonly string[]): void {
  const lines = examples.map((example) => `  $ ${example}`)
  command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
}

function toOption([flags, description, many]: OptionSpec): Option {
  const option = new Option(flags, description)
  if (!many) return option
  return option.default([], 'none').argParser((value, before: string[]) => [...before, value])
}

/** Options after the command override those before it. */
export function toFrame(command: Command): { terminal: Terminal; settings: Settings } {
  const merged: Record<string, unknown> = {}
  for (let level: Command | null = command; level !== null; level = level.parent) {
    for (const option of level.options) {
      const name = option.attributeName()
      const value: unknown = level.getOptionValue(name)
      const shared = option.helpGroupHeading !== undefined
      if (shared && value !== undefined && merged[name] === undefined) merged[name] = value
    }
  }
  const options = GlobalOptions.parse(merged)
  return { terminal: createTerminal(options.json), settings: toSettings(options, process.env) }
}

function toInput<Input extends z.ZodType>(command: Command, schema: Input, more: object): z.output<Input> {
  const raw: Record<string, unknown> = { ...command.opts(), ...more }
  for (const [index, argument] of command.registeredArguments.entries())
    raw[argument.name()] = command.processedArgs[index]
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${toFlag(command, issue.path)}: ${issue.message}`)
  throw new UsageError(problems.join('; '), command)
}

function toFlag(command: Command, path: readonly PropertyKey[]): string {
  const name = String(path[0] ?? '')
  return command.options.find((option) => option.attributeName() === name)?.long ?? name
}

/** Wrong use of one command; the error points to the help of that command. */
export class UsageError extends GatewayError {
  readonly command: Command

  constructor(message: string, command: Command) {
    super('request-invalid', message)
    this.command = command
  }
}

function createRequest(terminal: Terminal, access: Access): Context['request'] {
  return async (doing, work, deadline = patience.usual) => {
    const address = await access.address()
    // Loaded only here, so that help and usage errors start fast.
    const { createClient, toClientError } = await import('../client/client.ts')
    const spinner = terminal.spin(doing)
    try {
      return await work(createClient(address, deadline), spinner)
    } catch (error) {
      throw toClientError(error, address.url)
    } finally {
      spinner.stop()
    }
  }
}

/** For commands without arguments and options. */
export const noInput = z.object({})
