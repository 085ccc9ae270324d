import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { ClientName, clientTitles } from '../../../contract/client.ts'
import { GatewayError } from '../../../contract/errors.ts'
import { parseForeign } from '../../../documents/parse.ts'
import { isPlainObject } from '../../../documents/values.ts'
import { getCodec } from '../../../formats/formats.ts'
import { readClientFile } from '../../clients/file.ts'
import { type Machine, toProjectFile, toUserFile } from '../../clients/places.ts'

/** A text to import. `client` is set if the file belongs to a known program. */
export type Source = {
  readonly file?: string | undefined
  readonly client?: ClientName | undefined
  readonly text: string
}

/** A configuration file of a known program on this machine. */
export type FoundFile = { readonly client: ClientName; readonly file: string; readonly place: 'user' | 'folder' }

/** The files that exist. They are not read. */
export function listFiles(machine: Machine): FoundFile[] {
  return ClientName.options.flatMap((client) => {
    const user = toUserFile(client, machine)
    const folder = toProjectFile(client, machine)
    const places = [
      { client, file: user, place: 'user' as const },
      ...(folder === undefined || folder === user ? [] : [{ client, file: folder, place: 'folder' as const }]),
    ]
    return places.filter(({ file }) => existsSync(file))
  })
}

/** The text of a file, of the user's file of a program, or of standard input. */
export async function readSource(wanted: string, machine: Machine): Promise<Source> {
  if (wanted === '-') return { text: await readInput() }
  const named = ClientName.safeParse(wanted)
  if (named.success) return readOf(named.data, toUserFile(named.data, machine))
  const file = resolve(machine.cwd, wanted)
  const known = ClientName.options.find((client) => toUserFile(client, machine) === file)
  return known === undefined ? { file, text: readText(file, wanted) } : readOf(known, file)
}

function readOf(client: ClientName, file: string): Source {
  const text = readText(file, `The file of ${clientTitles[client]}, ${file},`)
  return { client, file, text: keepServers(client, text) }
}

function readText(file: string, name: string): string {
  const { text } = readClientFile(file)
  if (text !== undefined) return text
  const clients = ClientName.options.join(', ')
  throw new GatewayError('request-invalid', `${name} does not exist. Name a file, - or one of: ${clients}`)
}

/** Only the part with the servers: some programs keep their history and their own tokens in the same file. */
function keepServers(client: ClientName, text: string): string {
  const codec = getCodec(client)
  const parsing = parseForeign(codec.format, text)
  if (!parsing.ok || !isPlainObject(parsing.parsed.value)) return text
  const document = parsing.parsed.value
  const [home] = codec.home(document)
  if (home === undefined) return text
  const kept = [String(home), 'inputs'].filter((key) => Object.hasOwn(document, key))
  return JSON.stringify(Object.fromEntries(kept.map((key) => [key, document[key]])))
}

const mostBytes = 1_048_576

async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    const piece = Buffer.from(chunk)
    bytes += piece.length
    if (bytes > mostBytes) throw new GatewayError('import-unreadable', 'Standard input is larger than 1 MiB')
    chunks.push(piece)
  }
  return Buffer.concat(chunks).toString('utf8')
}
