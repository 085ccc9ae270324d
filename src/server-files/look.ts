import { isUtf8 } from 'node:buffer'
import { formatProblem, parseServerFile, type ServerFileReading } from '../config/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import { readProgramFile } from '../lib/file-trust.ts'

/** Content of a server file that was read once. Everything that follows uses these values. */
export type Content = Extract<ServerFileReading, { ok: true }> & { readonly file: string }
/** The first file that exists. */
export type Look = Content | { readonly ok: false; readonly file: string; readonly reason: string } | undefined

const mostBytes = 1_048_576

export function lookAt(files: readonly string[]): Look {
  for (const file of files) {
    const found = readOne(file)
    if (found) return found
  }
  return undefined
}

function readOne(file: string): Look {
  try {
    const bytes = readProgramFile(file, mostBytes)
    if (bytes === undefined) return undefined
    if (!isUtf8(bytes)) return { ok: false, file, reason: `${file} is not UTF-8 text` }
    const reading = parseServerFile(file, new TextDecoder('utf-8').decode(bytes))
    if (reading.ok) return { ...reading, file }
    const [first] = reading.problems
    return { ok: false, file, reason: first ? formatProblem(first) : `${file} has a mistake` }
  } catch (error) {
    return { ok: false, file, reason: toGatewayError(error).message }
  }
}
