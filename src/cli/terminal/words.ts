import type { Risk } from '../../contract/risk.ts'
import type { ConnectionState, ServerDetail, ServerFailure } from '../../contract/server.ts'
import type { Tool } from '../../contract/tool.ts'
import { toVisible } from '../../shared/visible.ts'
import { countOf } from '../../shared/words.ts'
import { toRunnable } from './connect-line.ts'
import type { Terminal } from './terminal.ts'

type Paint = (text: string) => string

export function paintState(terminal: Terminal, state: ConnectionState): Paint {
  const { green, yellow, red, dim } = terminal.colours
  if (state === 'connected') return green
  if (state === 'connecting') return yellow
  return state === 'disabled' ? dim : red
}

export function paintRisk(terminal: Terminal, risk: Risk): Paint {
  const { green, yellow, red } = terminal.colours
  return { read: green, write: yellow, danger: red }[risk]
}

/** The source of a tool's risk. */
export const riskOrigins: Readonly<Record<Tool['riskFrom'], string>> = {
  override: 'set in the configuration',
  annotations: 'annotations of the tool',
  name: 'name of the tool, which contradicts its annotations',
  default: 'default of the server (no annotations)',
}

/** `3 tools, 1 set aside` */
export function countTools({
  tools,
  setAside,
  complete,
}: Pick<ServerDetail, 'tools' | 'setAside' | 'complete'>): string {
  const parts = [countOf(tools.length, 'tool')]
  if (setAside.length > 0) parts.push(`${setAside.length} set aside`)
  if (!complete) parts.push('list incomplete')
  return parts.join(', ')
}

/** Class and message, then the hint, then the last output lines of the server. */
export function describeFailure(failure: ServerFailure): string {
  return [
    `${failure.class}: ${toVisible(failure.message)}`,
    `  ${toRunnable(toVisible(failure.hint))}`,
    ...toOutputLines(failure.output),
  ].join('\n')
}

/** Output lines of a server, marked so that they do not look like our own text. */
export function toOutputLines(output: readonly string[] = []): string[] {
  return output.map((line) => `  | ${toVisible(line)}`)
}

/** Aligned `name   value` lines; facts without a value are left out. */
export function renderFacts(facts: readonly (readonly [name: string, value: string | undefined])[]): string {
  const shown = facts.filter(([, value]) => value !== undefined && value !== '')
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${toVisible(value ?? '')}`).join('\n')
}
