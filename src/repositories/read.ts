import { isUtf8 } from 'node:buffer'
import type { ScopedServer } from '../contract/config.ts'
import { findFormat, parseForeign, withoutQuotes } from '../documents/parse.ts'
import { isPlainObject } from '../documents/values.ts'
import { readDocument, recognise } from '../formats/formats.ts'

/** An entry of the file. `notes` name the settings that are not taken over. */
export type FoundServer = { readonly key: string; readonly definition: ScopedServer; readonly notes: readonly string[] }

/** `ignored` names the parts of the file that do not become servers. */
export type Found =
  | { readonly ok: true; readonly servers: readonly FoundServer[]; readonly ignored: readonly string[] }
  | { readonly ok: false; readonly problem: string }

const mostServers = 100

/** Reads the servers of a file. Starts, resolves and contacts nothing. A problem never contains a value of the file. */
export function readServers(file: string, bytes: Buffer): Found {
  if (!isUtf8(bytes)) return broken(file, 'is not UTF-8 text')
  const format = findFormat(file) ?? 'json'
  const parsing = parseForeign(format === 'json' ? 'jsonc' : format, bytes.toString('utf8'))
  if (!parsing.ok) {
    const [fault] = parsing.faults
    const reason = withoutQuotes(fault?.message ?? 'it cannot be parsed', format)
    return broken(file, `is not valid in line ${fault?.position.line ?? 1}: ${reason}`)
  }
  const document = parsing.parsed.value
  const [codec] = recognise(document)
  if (codec === undefined || !isPlainObject(document)) return broken(file, 'has no servers: write {"mcpServers": {}}')
  const { servers, reported } = readDocument(codec, document)
  if (servers.length > mostServers) {
    return broken(file, `has ${servers.length} servers; at most ${mostServers} are allowed`)
  }
  const [home] = codec.home(document)
  const others = home === undefined ? [] : Object.keys(document).filter((key) => key !== home)
  return {
    ok: true,
    servers: servers.map(({ key, definition, notes }) => ({
      key,
      definition,
      notes: notes.map(({ field, message }) => `${field}: ${message}`),
    })),
    ignored: [...others.map((key) => `${key}: is not taken over`), ...reported.map(toLine)],
  }
}

function toLine({ key, message }: { key: string; message: string }): string {
  return `${key}: ${message}`
}

function broken(file: string, what: string): Found {
  return { ok: false, problem: `${file} ${what}` }
}
