import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { ExportedEntry } from '../contract/audit.ts'
import { GatewayError } from '../contract/errors.ts'
import { toSystemReason } from '../contract/system-error.ts'
import { parseJson } from '../lib/json.ts'
import type { AuditTable } from '../storage/database.ts'
import type { OutsideAnchor } from './known-anchors.ts'

/** One entry as a line of an export or an anchor file. `previous` is the hash of the entry before. */
export function toLine(row: AuditTable, previous: string | null): string {
  const { instance, sequence, at, kind, call, principal, subject, body, hash } = row
  return `${JSON.stringify({ instance, sequence, at, kind, call, principal, subject, body, previous, hash })}\n`
}

/** The entries of a file in order; undefined for a line that is not an entry. */
export async function* readLines(file: string): AsyncGenerator<ExportedEntry | undefined> {
  const input = createReadStream(file)
  try {
    const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
    for await (const line of lines) if (line.trim() !== '') yield parseLine(line)
  } catch (error) {
    throw new GatewayError(
      'request-invalid',
      `${file} cannot be read: ${toSystemReason(error)}`,
      { file },
      { cause: error },
    )
  } finally {
    input.destroy()
  }
}

function parseLine(line: string): ExportedEntry | undefined {
  try {
    return ExportedEntry.safeParse(parseJson(line)).data
  } catch {
    return undefined
  }
}

/** The anchors of several files. Missing files are skipped. */
export async function* readAnchors(files: readonly string[]): AsyncGenerator<OutsideAnchor> {
  for (const file of files) {
    if (!existsSync(file)) continue
    let line = 0
    for await (const entry of readLines(file)) {
      line++
      yield { file, line, anchor: entry?.kind === 'anchor' ? entry : undefined }
    }
  }
}
