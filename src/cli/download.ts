import type { IncomingMessage } from 'node:http'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { ErrorBody } from '../contract/api/base.ts'
import { GatewayError, isErrorCode } from '../contract/errors.ts'
import { parseJson } from '../lib/json.ts'
import { type Address, toCredentials } from './address.ts'

const mostOfError = 65_536

/** What may be larger than the memory: it goes where it should as it comes. `path` stands below `/api`. */
export async function download(
  address: Address,
  path: string,
  to: NodeJS.WritableStream,
  idleMs: number,
): Promise<void> {
  const response = await ask(new URL(`/api${path}`, address.url), toCredentials(address), idleMs)
  if (response.statusCode !== 200) throw await toError(response, address.url)
  await pipeline(response, to, { end: to !== process.stdout })
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
