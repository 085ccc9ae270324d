import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../../contract/errors.ts'
import { createFile } from '../../lib/durable-file.ts'
import { readOwnFile } from '../../lib/file-trust.ts'
import { findAdminToken } from '../client/data-folder.ts'

/** The token by which programs of this machine's user speak as one agent, kept where only that user can read it. */
export type AgentToken = {
  /** The one in the folder; made by the running gateway if there is none. */
  get(url: string): Promise<string>
  /**
   * The gateway refused this one. Gets another if it does not know it (the data was replaced), throws `token-invalid`
   * if somebody revoked it, and is undefined if what answers there is not the gateway of this folder at all.
   */
  replace(url: string, refused: string): Promise<string | undefined>
}

const patienceMs = 15_000

export function createAgentToken(folder: string, agent: string): AgentToken {
  const file = join(folder, `agent-token.${agent}`)
  let making: Promise<string> | undefined

  /** Two lines of one program may need it in the same moment. */
  function makeOnce(url: string): Promise<string> {
    making ??= make(url).finally(() => {
      making = undefined
    })
    return making
  }

  async function make(url: string): Promise<string> {
    const { client, toClientError } = await asAdministrator(url)
    const made = await client.tokens.create({ agent }).catch((error: unknown) => {
      throw toClientError(error, url)
    })
    if (await createFile(file, `${made.token}\n`)) return made.token
    // Another program was faster: one token is enough.
    const other = readToken(file)
    if (other === undefined) return made.token
    await client.tokens.revoke({ params: { id: made.id } }).catch(() => {})
    return other
  }

  async function asAdministrator(url: string) {
    const token = findAdminToken(folder)
    if (token === undefined) throw new GatewayError('token-missing', `${folder} holds no administrator token`)
    // Loaded when it is needed, which is once in the life of a data folder.
    const { createClient, toClientError } = await import('../client/client.ts')
    return { client: createClient({ url, token }, patienceMs), toClientError }
  }

  return {
    async get(url) {
      return readToken(file) ?? (await makeOnce(url))
    },
    async replace(url, refused) {
      const { client } = await asAdministrator(url)
      const known = await client.tokens.list().catch(() => undefined)
      if (known === undefined) return undefined
      const revoked = known.items.find(
        (token) => token.revokedAt !== undefined && refused.startsWith(`${token.prefix}_`),
      )
      if (revoked) {
        const message = `The token of the agent ${agent} was revoked; remove ${file} to have a new one made`
        throw new GatewayError('token-invalid', message)
      }
      const current = readToken(file)
      if (current !== undefined && current !== refused) return current
      await rm(file, { force: true })
      return makeOnce(url)
    },
  }
}

function readToken(file: string): string | undefined {
  return readOwnFile(file)?.trim() || undefined
}
