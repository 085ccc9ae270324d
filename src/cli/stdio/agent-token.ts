import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../../contract/errors.ts'
import { createFile } from '../../lib/durable-file.ts'
import { readOwnFile } from '../../lib/file-trust.ts'
import { findAdminToken } from '../client/data-folder.ts'

/** The token of the agent that `stdio` uses, in a file that only this user can read. */
export type AgentToken = {
  /** Reads the token from the data folder. If it is missing, asks the gateway to create one. */
  get(url: string): Promise<string>
  /**
   * Called when the gateway refused the token. Returns a new token if the gateway does not know the old one (the database
   * was replaced). Throws `token-invalid` if the token was revoked. Undefined if the program is not this folder's gateway.
   */
  replace(url: string, refused: string): Promise<string | undefined>
}

const patienceMs = 15_000

export function createAgentToken(folder: string, agent: string): AgentToken {
  const file = join(folder, `agent-token.${agent}`)
  let making: Promise<string> | undefined

  /** Parallel requests share one new token. */
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
    // Another `stdio` process created the file first: use its token.
    const other = readToken(file)
    if (other === undefined) return made.token
    await client.tokens.revoke({ params: { id: made.id } }).catch(() => {})
    return other
  }

  async function asAdministrator(url: string) {
    const token = findAdminToken(folder)
    if (token === undefined) throw new GatewayError('token-missing', `${folder} contains no admin token`)
    // Loaded only here: this runs once per data folder.
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
        const message = `The token of the agent ${agent} was revoked; remove ${file} to create a new token`
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
