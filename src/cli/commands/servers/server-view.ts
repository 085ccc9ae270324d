import type { SavedServer, ServerDetail, Validation } from '../../../contract/server.ts'
import type { SetAside, Tool } from '../../../contract/tool.ts'
import { toDuration, toRelative } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import { exit } from '../../terminal/exit.ts'
import { renderTable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { countTools, describeFailure, paintRisk, paintState, renderFacts } from '../../terminal/words.ts'
import type { Context } from '../command.ts'

export function renderServer(terminal: Terminal, server: ServerDetail): string {
  const now = Date.now()
  const info = server.serverInfo
  const facts = renderFacts([
    ['name', server.name],
    ['title', server.title],
    ['scope', server.scope],
    ['description', server.description],
    ['transport', server.transport],
    ['since', toRelative(server.since, now)],
    ['progress', server.progress],
    ['created', toRelative(server.createdAt, now)],
    ['changed', toRelative(server.updatedAt, now)],
    ['last success', toRelative(server.lastSuccessAt, now)],
    ['next attempt', toRelative(server.nextAttemptAt, now)],
    ['protocol', server.protocol],
    ['server version', info && `${info.name} ${info.version}`],
    ['tools', countTools(server)],
  ])
  const parts = [paintState(terminal, server.state)(server.state), facts]
  if (server.error) parts.push(terminal.colours.red(describeFailure(server.error)))
  parts.push(`definition\n${indent(toVisible(JSON.stringify(server.definition, null, 2)))}`)
  if (server.tools.length > 0) parts.push(renderTools(terminal, server.tools))
  if (server.setAside.length > 0) parts.push(renderSetAside(terminal, server.setAside))
  return parts.join('\n\n')
}

export function renderValidation(terminal: Terminal, validation: Validation): string {
  const { green, red } = terminal.colours
  if (validation.failure) return `${red('failed')}  ${describeFailure(validation.failure)}`
  const info = validation.serverInfo
  const facts = [
    countTools({ ...validation, complete: true }),
    validation.protocol && `protocol ${validation.protocol}`,
    info && `${info.name} ${info.version}`,
    toDuration(validation.durationMs),
  ]
  const parts = [`${green('works')}  ${toVisible(facts.filter(Boolean).join(', '))}`]
  if (validation.tools.length > 0) parts.push(renderTools(terminal, validation.tools))
  if (validation.setAside.length > 0) parts.push(renderSetAside(terminal, validation.setAside))
  return parts.join('\n\n')
}

/** The change is saved even if the server does not connect; the exit code shows that. */
export function showChange({ terminal }: Context, server: SavedServer): number {
  const state = paintState(terminal, server.state)(server.state)
  terminal.answer(server, () => `${toVisible(server.name)}: ${state}, ${countTools(server)}`)
  const { secrets = [], warnings = [] } = server
  if (secrets.length > 0) {
    const names = secrets.map((name) => `\${${toVisible(name)}}`).join(', ')
    terminal.talk(`Moved to the secret store: the definition now contains ${names} instead of the secret.`)
  }
  for (const warning of warnings) terminal.talk(`${terminal.talkColours.yellow('warning:')} ${toVisible(warning)}`)
  if (server.error && server.state !== 'disabled') {
    const { yellow } = terminal.talkColours
    terminal.talk(`${yellow('warning:')} ${toVisible(server.name)} is saved, but not connected`)
    terminal.talk(indent(describeFailure(server.error)))
    terminal.next(`sallyport servers validate ${server.name}`)
    return exit.notConnected
  }
  terminal.next(
    server.state === 'connected' ? `sallyport tools list --server ${server.name}` : 'sallyport servers list',
  )
  return exit.done
}

export function renderTools(terminal: Terminal, tools: readonly Tool[]): string {
  return renderTable(
    tools,
    [
      { title: 'tool', value: (tool) => tool.name },
      { title: 'risk', value: (tool) => tool.risk, paint: (text, tool) => paintRisk(terminal, tool.risk)(text) },
      { title: 'description', value: (tool) => tool.description || tool.title || '', shrinks: true, drops: 1 },
    ],
    terminal.width,
  )
}

function renderSetAside(terminal: Terminal, tools: readonly SetAside[]): string {
  return renderTable(
    tools,
    [
      { title: 'set aside', value: (tool) => tool.name },
      { title: 'reason', value: (tool) => tool.reason, shrinks: true },
    ],
    terminal.width,
  )
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}
