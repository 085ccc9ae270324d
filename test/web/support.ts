import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { readRecord, stdioFixture } from '../fixtures/fixtures.ts'
import { type ConfigInput, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { firstAdministrator, type TestPerson } from '../support/people.ts'
import { launch } from './browser.ts'

export type Stage = {
  readonly gateway: TestGateway
  readonly browser: Browser
  readonly ada: TestPerson
  /** A call over REST, which waits without holding anything open; answers with the id of the approval. */
  ask(agent: string, tool: string, given: object): Promise<string>
  answer(person: TestPerson, id: string, body: object): Promise<void>
  stateOf(id: string): Promise<unknown>
  /** What the server says of its tools from now on. */
  restate(definitions: object): Promise<void>
  /** The arguments that have reached the server. */
  received(): Promise<unknown[]>
  close(): Promise<void>
}

/** A gateway with a recording server and an administrator, and a browser; tools can be defined otherwise than they are. */
export async function startStage(more: Partial<ConfigInput> = {}, definitions: object = {}): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  const record = join(folder, 'record.jsonl')
  const restated = join(folder, 'definitions.json')
  writeFileSync(restated, JSON.stringify(definitions))
  const server = stdioFixture('recording', ['--record', record, '--definitions', restated])
  const [browser, gateway] = await Promise.all([
    takeBrowser(),
    startTestGateway({ servers: { files: server }, ...more }),
  ])
  const ada = await firstAdministrator(gateway)
  await gateway.reach('files', 'connected')

  return {
    gateway,
    browser,
    ada,
    async ask(agent, tool, given) {
      const reply = await gateway.fetch(agent, `/api/tools/${tool}/call`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ arguments: given }),
      })
      const body: { approval?: { id: string } } = JSON.parse(await reply.text())
      if (body.approval) return body.approval.id
      throw new Error(`It was not asked: ${JSON.stringify(body)}`)
    },
    async answer(person, id, body) {
      const { status, text } = await person.request('POST', `/api/approvals/${id}/answer`, body)
      if (status !== 200) throw new Error(`The answer was not taken: ${text}`)
    },
    stateOf: async (id) => (await ada.request('GET', `/api/approvals/${id}`)).message.state,
    async restate(stated) {
      writeFileSync(restated, JSON.stringify({ ...definitions, ...stated }))
      await gateway.fetch('stage', '/api/tools/files_announce_lists/call', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ arguments: {} }),
      })
    },
    received: async () => (await readRecord(record)).map((line) => line.arguments),
    async close() {
      await giveBack(browser)
      await gateway.close()
      rmSync(folder, { recursive: true })
    },
  }
}

/** One browser for all stages that are open: starting another takes more time than the rest of a stage. */
let shared: { readonly browser: Promise<Browser>; users: number } | undefined

function takeBrowser(): Promise<Browser> {
  shared ??= { browser: launch(), users: 0 }
  shared.users++
  return shared.browser
}

/** The last one to give it back closes it. */
async function giveBack(browser: Browser): Promise<void> {
  if (shared && --shared.users > 0) return
  shared = undefined
  await browser.close()
}
