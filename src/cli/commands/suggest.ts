import { GatewayError } from '../../contract/errors.ts'
import { nearest } from '../../lib/text.ts'
import type { Client } from '../client/client.ts'

/** Runs `work`. If a server or a tool is not found, the error suggests a similar name. */
export async function suggesting<Result>(client: Client, name: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const { toClientError } = await import('../client/client.ts')
    const failure = toClientError(error, 'The gateway')
    if (failure.details.suggestion !== undefined) throw failure // the gateway's message already contains a suggestion
    const known = await listNames(client, failure).catch(() => [])
    const meant = nearest(name, known)
    if (meant === undefined) throw failure
    throw new GatewayError(failure.code, `${failure.message}. Did you mean ${meant}?`, {
      ...failure.details,
      suggestion: meant,
    })
  }
}

async function listNames(client: Client, failure: GatewayError): Promise<string[]> {
  if (failure.code === 'server-not-found') return (await client.servers.list()).items.map((server) => server.name)
  if (failure.code === 'tool-not-found') return (await client.tools.list({})).items.map((tool) => tool.name)
  return []
}
