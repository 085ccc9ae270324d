import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { isProof } from '../../lib/proof.ts'
import { send, toJson } from './http.ts'

const answerMs = 10_000
const mostBytes = 4096
const Answer = z.object({ url: z.string(), proof: z.string() })

export type ProofDemand = {
  readonly url: string
  readonly token: string
  /** The address in `gateway.json`, if known. The answer must name it, so that a program cannot relay the challenge. */
  readonly listensAt?: string
}

/**
 * Throws unless the program at this address proves that it knows the admin token of the data folder. Called before any
 * secret is sent: after the gateway has ended, another program may listen on its port.
 */
export async function demandProof({ url, token, listensAt }: ProofDemand): Promise<void> {
  const challenge = randomBytes(32).toString('base64url')
  const asked = await send({ url: new URL(`/proof?challenge=${challenge}`, url), deadline: answerMs })
  const body = await asked.read(mostBytes)
  const answer = Answer.safeParse(body && toJson(body)).data
  const proven =
    answer !== undefined &&
    (listensAt === undefined || answer.url === listensAt) &&
    isProof(answer.proof, { token, url: answer.url, challenge })
  if (proven) return
  const message = `The program at ${url} is not the gateway of this data folder: it does not know the admin token of the folder`
  throw new GatewayError('unreachable', `${message}. Nothing was sent to it`)
}
