import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { GatewayError } from '../../contract/errors.ts'
import { toSystemReason } from '../../contract/system-error.ts'
import { type Address, toCredentials } from './address.ts'
import { readRefusal, send } from './http.ts'

/**
 * Streams a response to a file or to standard output, because it may be larger than the memory. `path` is below `/api`.
 * The file is opened after the gateway has answered, so that a refused request leaves no empty file.
 */
export async function download(
  address: Address,
  path: string,
  file: string | undefined,
  idleMs: number,
): Promise<void> {
  const url = new URL(`/api${path}`, address.url)
  const answer = await send({ url, headers: toCredentials(address), silence: idleMs })
  if (answer.status !== 200) throw await readRefusal(answer, address.url)
  const response = answer.incoming
  if (file === undefined) return pipeline(response, process.stdout, { end: false })
  const output = await open(file, 'w', 0o600).catch((error: unknown) => {
    response.destroy()
    throw toUnwritable(file, error)
  })
  await pipeline(response, output.createWriteStream()).catch((error: unknown) => {
    throw toUnwritable(file, error)
  })
}

/** Explains system errors while writing; returns other errors unchanged. */
function toUnwritable(file: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
  if (code === undefined || !/^E[A-Z]+$/.test(code) || /^(ECONN|EPIPE)/.test(code)) return error
  const fault = writingFaults[code]
  if (fault !== undefined)
    return new GatewayError('request-invalid', `${file} cannot be written: ${fault}`, { file }, { cause: error })
  return new GatewayError(
    'file-failed',
    `${file} cannot be written: ${toSystemReason(error)}`,
    { file },
    { cause: error },
  )
}

/** System errors caused by the given file name. Other codes are failures of the disk. */
const writingFaults: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  EISDIR: 'it is a folder',
  EACCES: 'this user is not allowed to write it',
}
