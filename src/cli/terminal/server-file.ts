import type { ServerFile, ServerFileEntry } from '../../contract/server-file.ts'
import { toVisible } from '../../shared/visible.ts'
import type { Terminal } from './terminal.ts'

const titles = { added: 'new', changed: 'changed', removed: 'removed', same: 'unchanged' } as const

/** Everything that a confirmation covers: each server with its program or address, and the settings without effect. */
export function renderServerFile({ talkColours }: Terminal, shown: ServerFile): string {
  const { yellow, dim } = talkColours
  const { file, servers, ignored, overridden } = shown
  const lines = servers.flatMap((entry) => [
    `  ${yellow(titles[entry.change])} ${toVisible(entry.name)}`,
    ...renderEntry(entry).map((line) => `    ${line}`),
  ])
  return [
    `${toVisible(file)} defines these servers:`,
    ...lines,
    ...(ignored.length > 0 ? [dim(`  without effect: ${toVisible(ignored.join(', '))}`)] : []),
    ...(overridden.length > 0 ? [dim(`  replaced by the configuration: ${toVisible(overridden.join(', '))}`)] : []),
  ].join('\n')
}

function renderEntry({ change, definition, before, variables }: ServerFileEntry): string[] {
  if (change === 'removed') return []
  return [
    ...(before === undefined ? [] : [`before: ${toLine(before)}`]),
    `${before === undefined ? '' : 'now:    '}${toLine(definition)}`,
    ...(variables.length > 0 ? [`gets: ${toVisible(variables.join(', '))}`] : []),
  ]
}

/** As JSON, so that spaces and quotes inside an argument cannot look like several arguments. */
function toLine(definition: unknown): string {
  return toVisible(JSON.stringify(definition))
}
