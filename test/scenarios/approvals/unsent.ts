import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Fields } from '../../fixtures/lib/json-rpc.ts'
import { temporaryFolder } from '../../storage/support.ts'
import { type Listener, startListener } from '../teams/support.ts'

export type UnsentStage = AsyncDisposable & {
  readonly listener: Listener
  /** What the program that is killed is started with. */
  readonly args: readonly string[]
  /** How many approvals were requested, and how many of them were used. */
  count(): { requested: number; used: number }
}

/** A server that the program of the test can switch off and on, by an address of its own. */
export async function createUnsentStage(tools: Fields[]): Promise<UnsentStage> {
  const listener = await startListener(() => tools)
  const control = createServer(async (request, response) => {
    await (request.url === '/pause' ? listener.pause() : listener.resume())
    response.end()
  })
  control.listen(0, '127.0.0.1')
  await once(control, 'listening')
  const address = control.address()
  const port = address === null || typeof address === 'string' ? 0 : address.port
  const folder = temporaryFolder()
  const [config, data] = [join(folder, 'sallyport.json'), join(folder, 'data')]
  mkdirSync(data)
  writeFileSync(config, JSON.stringify({ servers: { files: { transport: 'http', url: listener.url } } }))
  return {
    listener,
    args: [config, data, `http://127.0.0.1:${port}`],
    count() {
      const file = new Sqlite(join(data, 'sallyport.db'), { readonly: true })
      const counted = (where: string) =>
        Number(file.prepare<[], { n: number }>(`select count(*) as n from approvals ${where}`).get()?.n)
      const found = { requested: counted(''), used: counted("where state = 'used'") }
      file.close()
      return found
    },
    async [Symbol.asyncDispose]() {
      control.closeAllConnections()
      control.close()
      await listener[Symbol.asyncDispose]()
    },
  }
}
