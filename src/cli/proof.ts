import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { GatewayError } from '../contract/errors.ts'
import { isProof } from '../lib/proof.ts'

const answerMs = 10_000
const mostBytes = 4096
const Answer = z.object({ url: z.string(), proof: z.string() })

export type ProofDemand = {
  readonly url: string
  readonly token: string
  /** The address in the gateway's own note, if it is known: another program could pass the question on. */
  readonly listensAt?: string
}

/**
 * Throws unless the program at this address knows the token of the data folder. It is asked before anything secret is
 * sent, because the port may belong to another program since the gateway ended.
 */
export async function demandProof({ url, token, listensAt }: ProofDemand): Promise<void> {
  const challenge = randomBytes(32).toString('base64url')
  const answer = Answer.safeParse(await ask(new URL(`/proof?challenge=${challenge}`, url))).data
  const proven =
    answer !== undefined &&
    (listensAt === undefined || answer.url === listensAt) &&
    isProof(answer.proof, { token, url: answer.url, challenge })
  if (proven) return
  const message = `The program at ${url} is not the gateway of this data folder: it does not know the folder's token`
  throw new GatewayError('unreachable', `${message}. Nothing was sent to it`)
}

async function ask(url: URL): Promise<unknown> {
  const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  const timeout = AbortSignal.timeout(answerMs)
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const outgoing = request(url, { agent: false, signal: timeout }, (incoming) => {
    const chunks: Buffer[] = []
    let bytes = 0
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > mostBytes) {
        incoming.destroy()
        return resolve(undefined)
      }
      chunks.push(chunk)
    })
    incoming.on('error', fail)
    incoming.on('end', () => resolve(parse(Buffer.concat(chunks).toString('utf8'))))
  })
  outgoing.on('error', fail)
  outgoing.end()
  return promise

  function fail(error: Error): void {
    const message = timeout.aborted
      ? `${url.origin} did not answer within ${answerMs / 1000} s`
      : `No gateway answers at ${url.origin} (${'code' in error ? error.code : error.message})`
    reject(new GatewayError('unreachable', message, {}, { cause: error }))
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
