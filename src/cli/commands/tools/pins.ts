import type { Command } from 'commander'
import { z } from 'zod'
import { ScopeText } from '../../../contract/api/base.ts'
import { GatewayError } from '../../../contract/errors.ts'
import type { Pin, PinDetail, PinState } from '../../../contract/pin.ts'
import { nearest } from '../../../lib/text.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import type { Client } from '../../client/client.ts'
import { confirm } from '../../terminal/confirm.ts'
import { exit } from '../../terminal/exit.ts'
import { renderTable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { addCommand, type Context, type OptionSpec, type Run } from '../command.ts'

const scopeOption: OptionSpec = [
  '--scope <scope>',
  'scope of the server, if several scopes have this name, such as agent:reviewer',
]
const yesOption: OptionSpec = ['--yes', 'do not ask']
const nameNote = ["NAME is a public tool name, SERVER/TOOL with the server's own tool name, or the id of a pin."]
const Named = z.object({ name: z.string(), scope: ScopeText.optional() })
/** The states in which the definition of a tool waits for a person to accept or block it. */
const open: readonly PinState[] = ['changed', 'new', 'suspicious']

/** `tools pins`, `diff`, `accept` and `block`. */
export function addPins(tools: Command, run: Run): void {
  addCommand(tools, run, {
    use: 'pins [server]',
    summary: 'list accepted tool definitions, and tools that changed since',
    options: [scopeOption, ['--open', 'only tools that need a decision: changed, new or suspicious']],
    examples: ['sallyport tools pins', 'sallyport tools pins files --open --json'],
    input: z.object({ server: z.string().optional(), scope: ScopeText.optional(), open: z.boolean().default(false) }),
    async run({ terminal, request }, { open: onlyOpen, ...query }) {
      const state = onlyOpen ? [...open] : undefined
      const page = await request('Listing pins', (client) => client.pins.list({ ...query, state }))
      terminal.answer(page, () => (page.items.length > 0 ? renderPins(terminal, page.items) : 'No pins.'))
      const first = page.items.find((pin) => open.includes(pin.state))
      if (first) terminal.next(`sallyport tools diff ${toName(first)}`)
      return exit.done
    },
  })

  addCommand(tools, run, {
    use: 'diff <name>',
    summary: 'show what changed in the definition of a tool since it was accepted',
    options: [scopeOption],
    notes: nameNote,
    examples: ['sallyport tools diff files_read_file', 'sallyport tools diff files/read_file --json'],
    input: Named,
    async run({ terminal, request }, named) {
      const pin = await request('Reading the pin', (client) => getPin(client, named))
      terminal.answer(pin, () => renderPin(pin))
      if (open.includes(pin.state)) terminal.next(`sallyport tools accept ${toName(pin)}`)
      return exit.done
    },
  })

  addCommand(tools, run, {
    use: 'accept <name>',
    summary: 'accept the current definition of a tool',
    options: [scopeOption, yesOption],
    notes: nameNote,
    examples: ['sallyport tools accept files_read_file', 'sallyport tools accept files/read_file --yes'],
    input: Named.extend({ yes: z.boolean().default(false) }),
    run: (context, input) => decide(context, input, 'accept'),
  })

  addCommand(tools, run, {
    use: 'block <name>',
    summary: 'hide a tool until it is accepted',
    options: [scopeOption, yesOption],
    notes: nameNote,
    examples: ['sallyport tools block files_delete_file', 'sallyport tools block files/delete_file --yes'],
    input: Named.extend({ yes: z.boolean().default(false) }),
    run: (context, input) => decide(context, input, 'block'),
  })
}

/** `servers upgrade`: shows all changes of a server and asks once. */
export function addServersUpgrade(servers: Command, run: Run): void {
  addCommand(servers, run, {
    use: 'upgrade <name>',
    summary: 'review and accept all changed and new tool definitions of a server',
    options: [scopeOption, yesOption],
    notes: ['Suspicious and blocked tools are not included: accept each one with `sallyport tools accept NAME`.'],
    examples: ['sallyport servers upgrade files', 'sallyport servers upgrade files --yes --json'],
    input: Named.extend({ yes: z.boolean().default(false) }),
    async run({ terminal, request }, { name, scope, yes }) {
      const pins = await request('Reading the pin', async (client) => {
        await client.servers.get({ params: { name }, query: { scope } })
        const { items } = await client.pins.list({ server: name, scope, state: [...open] })
        return getAll(client, items)
      })
      const [suspicious, ready] = [pins.filter(isSuspicious), pins.filter((pin) => !isSuspicious(pin))]
      for (const pin of pins) terminal.talk(`${renderPin(pin)}\n`)
      const accept = ready.flatMap(({ id, live }) => (live ? [{ id, hash: live.hash }] : []))
      const left = suspicious.map(toName)
      if (accept.length === 0) {
        terminal.answer({ accepted: 0, left }, () => `Nothing to accept for ${toVisible(name)}.`)
        return exit.done
      }
      const question = `Accept ${countOf(accept.length, 'definition')} of ${toVisible(name)}?`
      if (!yes && !(await ask(terminal, question))) return exit.failed
      const { accepted } = await request('Accepting', (client) => client.pins.acceptMany({ accept }))
      terminal.answer({ accepted, left }, () => `Accepted ${countOf(accepted, 'definition')} of ${toVisible(name)}.`)
      if (left.length > 0) terminal.talk(`Not accepted, because suspicious: ${left.join(', ')}`)
      return exit.done
    },
  })
}

const isSuspicious = (pin: Pin): boolean => pin.state === 'suspicious'

async function decide(
  { terminal, request }: Context,
  { yes, ...named }: z.infer<typeof Named> & { yes: boolean },
  verb: 'accept' | 'block',
): Promise<number> {
  const pin = await request('Reading the pin', (client) => getPin(client, named))
  const hash = pin.live?.hash ?? pin.accepted?.hash
  if (hash === undefined) throw new GatewayError('pin-not-found', `${toName(pin)} has no definition to decide on`)
  if (!yes) terminal.talk(renderPin(pin))
  const question = `${verb === 'accept' ? 'Accept' : 'Block'} ${toName(pin)}?`
  if (!yes && !(await ask(terminal, question))) return exit.failed
  const decided = await request(verb === 'accept' ? 'Accepting' : 'Blocking', (client) =>
    client.pins[verb]({ params: { id: pin.id }, body: { hash } }),
  )
  terminal.answer(decided, () => `${toName(decided)}: ${decided.state}`)
  return exit.done
}

/** Without a terminal, --yes is required: a definition must not be accepted by accident. */
function ask(terminal: Terminal, question: string): Promise<boolean> {
  if (terminal.interactive) return confirm(terminal, question)
  throw new GatewayError(
    'request-invalid',
    'This is not a terminal, so the command cannot ask: review the difference, then repeat with --yes',
  )
}

const atOnce = 16

async function getAll(client: Client, pins: readonly Pin[]): Promise<PinDetail[]> {
  const details: PinDetail[] = []
  for (let from = 0; from < pins.length; from += atOnce) {
    const some = pins.slice(from, from + atOnce).map(({ id }) => client.pins.get({ params: { id } }))
    details.push(...(await Promise.all(some)))
  }
  return details
}

/** Finds a pin by its id, its public name, or SERVER/TOOL. */
async function getPin(client: Client, { name, scope }: z.infer<typeof Named>): Promise<PinDetail> {
  const { items } = await client.pins.list({ scope })
  const exact = items.filter((pin) => pin.id === name || toName(pin) === name || pin.tool === name)
  const found = exact.length > 0 ? exact : items.filter((pin) => isStartOf(name, pin))
  const [only] = found
  if (only && found.length === 1) return client.pins.get({ params: { id: only.id } })
  if (only) {
    const choices = found.map((pin) => `${pin.id} (${pin.scope})`).join(', ')
    throw new GatewayError(
      'request-invalid',
      `Several pins are named ${toVisible(name)}; use the id of one: ${choices}`,
    )
  }
  const names = items.flatMap((pin) => [toName(pin), ...(pin.tool ? [pin.tool] : [])])
  const meant = nearest(name, names)
  const suggestion = meant === undefined ? '' : `. Did you mean ${meant}?`
  throw new GatewayError(
    'pin-not-found',
    `No pin is named ${toVisible(name)}${suggestion}`,
    meant ? { suggestion: meant } : {},
  )
}

/** Very short texts do not match as the beginning of an id. */
function isStartOf(text: string, { id }: Pin): boolean {
  return text.length >= 8 && id.startsWith(text)
}

function toName(pin: Pin): string {
  if (pin.kind === 'tool') return `${pin.server}/${pin.name}`
  return pin.kind === 'instructions' ? `${pin.server}/(instructions)` : `${pin.server}/${pin.kind}:${pin.name}`
}

function renderPins(terminal: Terminal, pins: readonly Pin[]): string {
  return renderTable(
    pins,
    [
      { title: 'name', value: toName },
      { title: 'scope', value: (pin) => pin.scope, drops: 2 },
      { title: 'state', value: toState, paint: (text, pin) => paintPin(terminal, (pin.inherited ?? pin).state)(text) },
      { title: 'accepted by', value: (pin) => pin.accepted?.by ?? '', drops: 1 },
      { title: 'reason', value: (pin) => pin.reason ?? '', shrinks: true },
    ],
    terminal.width,
  )
}

/** The pin of an inherited entry decides if it is stricter. */
function toState({ state, inherited }: Pin): string {
  return inherited ? `${state} (${inherited.scope}: ${inherited.state})` : state
}

function paintPin(terminal: Terminal, state: PinState): (text: string) => string {
  const { green, yellow, red } = terminal.colours
  if (state === 'accepted') return green
  return state === 'suspicious' || state === 'blocked' ? red : yellow
}

const headings: Readonly<Record<PinState, string>> = {
  accepted: 'accepted, unchanged',
  changed: 'changed since it was accepted; calls require approval',
  new: 'new; calls require approval',
  suspicious: 'suspicious; hidden',
  blocked: 'blocked',
}

/** The gateway has already made invisible characters visible in the difference. */
function renderPin(pin: PinDetail): string {
  const reason = pin.reason === undefined ? '' : ` (${toVisible(pin.reason)})`
  const lines = [`${toName(pin)}: ${headings[pin.state]}${reason}`]
  if (pin.inherited) {
    lines.push(`The pin of ${pin.inherited.scope} decides here: ${headings[pin.inherited.state]}`)
  }
  if (pin.difference !== '') lines.push(toVisible(pin.difference))
  return lines.join('\n')
}
