import { open } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { ErrorBody } from '../contract/api/base.ts'
import { GatewayError, isErrorCode } from '../contract/errors.ts'
import { toSystemReason } from '../contract/system-error.ts'
import { parseJson } from '../lib/json.ts'
import { type Address, toCredentials } from './address.ts'

const mostOfError = 65_536

/**
 * What may be larger than the memory: it is written as it arrives, to a file or to standard output. `path` is below `/api`.
 * The file is opened once the gateway has answered, so that a refusal leaves no empty one behind.
 */
export async function download(
  address: Address,
  path: string,
  file: string | undefined,
  idleMs: number,
): Promise<void> {
  const response = await ask(new URL(`/api${path}`, address.url), toCredentials(address), idleMs)
  if (response.statusCode !== 200) throw await toError(response, address.url)
  if (file === undefined) return pipeline(response, process.stdout, { end: false })
  const output = await open(file, 'w', 0o600).catch((error: unknown) => {
    response.destroy()
    throw toUnwritable(file, error)
  })
  await pipeline(response, output.createWriteStream()).catch((error: unknown) => {
    throw toUnwritable(file, error)
  })
}

/** A full disk, a missing folder, a folder instead of a file; what is not the system's is passed on. */
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

/** Mistakes in the name of the file. Every other code means trouble with the disk. */
const writingFaults: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not write it',
}

function ask(url: URL, headers: Record<string, string>, idleMs: number): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  const outgoing = send(url, { headers, agent: false, timeout: idleMs })
  const fail = (reason: string) => reject(new GatewayError('unreachable', `${url.origin} ${reason}`))
  outgoing.on('response', resolve)
  outgoing.on('timeout', () => outgoing.destroy(new Error('went silent')))
  outgoing.on('error', (error) => fail(`did not answer: ${error.message}`))
  outgoing.end()
  return promise
}

async function toError(response: IncomingMessage, url: string): Promise<GatewayError> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    if (text.length > mostOfError) break
  }
  const answer = ErrorBody.safeParse(parseOrNothing(text)).data?.error
  if (answer && isErrorCode(answer.code)) return new GatewayError(answer.code, answer.message, answer.details)
  return new GatewayError('unreachable', `${url} answered ${response.statusCode}`)
}

function parseOrNothing(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
