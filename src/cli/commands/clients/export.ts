import { resolve } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { ClientName } from '../../../contract/client.ts'
import { ScopedServer } from '../../../contract/config.ts'
import {
  getCodec,
  type NamedServer,
  type Note,
  toVariableName,
  type WrittenServer,
  writeServers,
} from '../../../formats/formats.ts'
import { hiddenMark } from '../../../lib/secret.ts'
import { toVisible } from '../../../shared/visible.ts'
import { exit } from '../../terminal/exit.ts'
import { addCommand, type Run } from '../command.ts'

type Exported = { readonly name: string; readonly written: boolean; readonly notes: readonly Note[] }

export function addExport(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'export <client>',
    summary: 'write the servers of the gateway in the format of another program',
    options: [
      ['--out <file>', 'add them to this file, instead of printing them'],
      ['--agent <name>', 'the servers of this agent (default: your own)'],
      ['--project <name>', 'the servers of this project'],
    ],
    notes: [
      `Programs: ${ClientName.options.join(', ')}`,
      '',
      'Secrets are written as variables, never as values. `connect` adds only the gateway itself.',
    ],
    examples: ['sallyport export vscode', 'sallyport export codex --out ~/.codex/config.toml'],
    input: z.object({
      client: ClientName,
      out: z.string().optional(),
      agent: z.string().optional(),
      project: z.string().optional(),
    }),
    async run({ terminal, request }, { client, out, agent, project }) {
      const { invalid, readClientFile, writeClientFile } = await import('../../clients/file.ts')
      const effective = await request('Asking the gateway', (api) => api.config.effective({ agent, project }))
      const found = await Promise.all(effective.servers.map(toNamed))
      const servers = found.filter((server) => 'definition' in server)
      const file = out === undefined ? undefined : readClientFile(resolve(out))
      const writing = writeServers(getCodec(client), file?.text ?? '', servers)
      if (!writing.ok) throw invalid(`${file?.path ?? 'The text'} cannot be edited: ${writing.message}`)
      if (file !== undefined) await writeClientFile(file, writing.text, { hasToken: false })
      const exported = found.map((server) => toExported(server, writing.servers))
      const document = {
        client,
        file: file?.path,
        text: file === undefined ? writing.text : undefined,
        servers: exported,
      }
      terminal.answer(document, () => (file === undefined ? writing.text.trimEnd() : `Wrote ${toVisible(file.path)}.`))
      for (const { name, notes } of exported) {
        for (const { field, message } of notes) terminal.talk(toVisible(`${name}${field && `: ${field}`}: ${message}`))
      }
      return exit.done
    },
  })
}

type Found =
  | (NamedServer & { readonly notes: readonly Note[] })
  | { readonly name: string; readonly notes: readonly Note[] }

/** The definition with variables for everything that is a secret, whether it is written out or hidden. */
async function toNamed({ name, definition }: { name: string; definition: unknown }): Promise<Found> {
  const { findLiterals, findPlaceholders, replaceLiterals, rewrite, toPlaceKey } = await import(
    '../../../masking/masking.ts'
  )
  const parsed = ScopedServer.safeParse(definition)
  const { transport, command, url } = parsed.data ?? {}
  if (!parsed.success || transport === undefined || (command === undefined && url === undefined)) {
    return { name, notes: [{ field: '', message: 'you may not see its definition, so it is not written' }] }
  }
  const literals = [...findLiterals(name, parsed.data), ...findPlaceholders(name, parsed.data)]
  const replaced = replaceLiterals({ ...parsed.data, transport }, literals, (literal) => `\${${literal.name}}`)
  const notes: Note[] = literals.map((literal) => toSecretNote(toPlaceKey(literal.place), literal.name))
  // The gateway hides a secret also where nothing but its value shows that it is one.
  const written = rewrite(replaced, (place, text) => {
    if (!text.includes(hiddenMark)) return text
    const variable = toVariableName(`${name} ${toPlaceKey(place)}`)
    notes.push(toSecretNote(toPlaceKey(place), variable))
    return text.replaceAll(hiddenMark, () => `\${${variable}}`)
  })
  return { name, definition: { ...written, secretsInArguments: parsed.data.secretsInArguments }, notes }
}

function toSecretNote(field: string, variable: string): Note {
  return { field, message: `is a secret: set the variable ${variable} for the program` }
}

function toExported({ name, notes }: Found, written: readonly WrittenServer[]): Exported {
  const outcome = written.find((server) => server.name === name)
  if (outcome === undefined) return { name, written: false, notes }
  const refused = outcome.refused === undefined ? [] : [{ field: '', message: `${outcome.refused}; it is not written` }]
  return { name, written: outcome.refused === undefined, notes: [...notes, ...outcome.notes, ...refused] }
}
