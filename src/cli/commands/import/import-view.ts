import type { ImportedServer, ImportResult } from '../../../contract/import.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import { type Column, renderTable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { wrapWords } from '../../terminal/width.ts'

/** The preview or the result of an import. */
export function renderImport(terminal: Terminal, result: ImportResult): string {
  const { servers } = result
  const width = terminal.width ?? 80
  const isSaved = servers.some(({ saved }) => saved !== undefined)
  const columns: Column<ImportedServer>[] = [
    { title: 'name', value: ({ name }) => name },
    ...(servers.some(({ scope }) => scope !== servers[0]?.scope)
      ? [{ title: 'scope', value: ({ scope }: ImportedServer) => scope, drops: 1 }]
      : []),
    isSaved ? { title: 'saved', value: toSaved } : { title: 'outcome', value: ({ outcome }) => outcome },
    { title: 'reached', value: toReached, shrinks: true },
  ]
  const table = servers.length === 0 ? 'No servers.' : renderTable(servers, columns, width)
  const notes = servers.flatMap(({ name, title, notes: own, error }) => [
    ...(title === name ? [] : [`${name}: its name there is ${title}`]),
    ...[...own, ...(error === undefined ? [] : [error])].map((note) => `${name}: ${note}`),
  ])
  return [
    `From: ${result.from.join(', ')}`,
    table,
    ...section('Notes', notes, width),
    ...section(
      'Not imported',
      result.reported.map(({ key, message }) => `${key} ${message}`),
      width,
    ),
    ...section('Secrets', result.secrets.map(toSecretLine), width),
    ...section('Variables', result.variables.map(toVariableLine), width),
    ...section('Warnings', result.warnings ?? [], width),
  ].join('\n\n')
}

function toSaved({ saved, outcome, state }: ImportedServer): string {
  if (saved !== true) return outcome === 'same' ? 'exists already' : 'no'
  return state ?? 'yes'
}

function toReached({ definition }: ImportedServer): string {
  if (definition === undefined) return ''
  const { transport, command, args, url } = definition
  if (transport !== 'stdio') return `${transport} ${url}`
  return ['stdio', command, ...(Array.isArray(args) ? args : [])].join(' ')
}

const secretStates = {
  new: 'is in the text and is stored as a secret',
  missing: 'is needed: store it as a secret',
  stored: 'exists and is used',
} as const

function toSecretLine({ name, scope, servers, state, description }: ImportResult['secrets'][number]): string {
  const about = description === undefined ? '' : ` (${description})`
  const where = scope === 'global' ? '' : ` in ${scope}`
  return `${name}${where}, for ${servers.join(', ')}: ${secretStates[state]}${about}`
}

function toVariableLine({ name, servers, listed, fallback }: ImportResult['variables'][number]): string {
  const state = listed ? 'is listed' : 'is not listed under environment'
  return `${name}, for ${servers.join(', ')}: ${state}${fallback ? '; the text has a fallback' : ''}`
}

function section(title: string, lines: readonly string[], width: number): string[] {
  if (lines.length === 0) return []
  const wrapped = lines.flatMap((line) => {
    return wrapWords(toVisible(line), Math.max(20, width - 4)).map(
      (part, index) => `${index === 0 ? '  ' : '    '}${part}`,
    )
  })
  return [[`${title}:`, ...wrapped].join('\n')]
}

/** `2 new, 1 changed`. */
export function countOutcomes(servers: readonly ImportedServer[]): string {
  const outcomes = ['new', 'changed', 'same', 'skipped'] as const
  const counts = outcomes.map((outcome) => [servers.filter((server) => server.outcome === outcome).length, outcome])
  const shown = counts.filter(([count]) => count !== 0).map(([count, outcome]) => `${count} ${outcome}`)
  return `${countOf(servers.length, 'server')}${shown.length === 0 ? '' : `: ${shown.join(', ')}`}`
}
