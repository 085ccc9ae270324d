import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import type { Call } from '../../src/contract/call.ts'
import { type RecordedCall, readRecord } from '../fixtures/fixtures.ts'
import { allowAll, recordedCalls, recordingAt, temporaryFolder } from '../scenarios/mcp/raw.ts'
import { acceptTools, poll, startTestGateway } from '../support/gateway.ts'
import { firstAdministrator } from '../support/people.ts'
import { launch, openWindow, signIn } from '../web/browser.ts'
import type { AgentProgram } from './agents.ts'
import type { Turn } from './formats/format.ts'
import { type AgentRun, runAgent } from './run-agent.ts'
import { type Script, startScriptedModel } from './scripted-model.ts'

export type StagedRun = AgentRun & { readonly turns: readonly Turn[]; readonly strangers: readonly string[] }

/** A gateway in front of a recording server, `rec`, and an agent that knows nothing but this gateway and its model. */
export type Stage = AsyncDisposable & {
  run(script: Script): Promise<StagedRun>
  /** The gateway ends and another one begins at the same address with the same data: every session is forgotten. */
  restart(): Promise<void>
  /** Resolves when the gateway offers a tool under this name, and somebody has accepted it. */
  offers(name: string): Promise<void>
  /** The calls that the gateway recorded, all of them ended, oldest first. */
  calls(): Promise<Call[]>
  /** The calls that reached the server. */
  received(): Promise<RecordedCall[]>
  /** A person at the gateway's page, signed in, before anything waits. */
  person(): Promise<StagedPerson>
}

/** Answers what comes up on the open page, with the mouse and the keyboard. */
export type StagedPerson = AsyncDisposable & { approve(): Promise<void>; deny(reason: string): Promise<void> }

export async function openStage(agent: AgentProgram): Promise<Stage> {
  const folder = await temporaryFolder()
  const { file, server } = recordingAt(folder.path)
  const rules = [
    ...allowAll,
    { tools: 'rec_destroy_thing', action: 'deny' as const },
    { tools: 'rec_write_thing', action: 'ask' as const },
  ]
  const start = async (port: number) => {
    const started = await startTestGateway({ servers: { rec: server }, rules }, { folder: folder.path, port })
    await started.reach('rec', 'connected')
    return started
  }
  let gateway = await start(0)
  const { mcpUrl } = gateway
  const token = await gateway.token('tester')
  return {
    async run(script) {
      await using model = await startScriptedModel(script)
      const own = await mkdtemp(join(folder.path, 'run-'))
      const ended = await runAgent(agent, { folder: own, modelUrl: model.url, mcpUrl, token })
      return { ...ended, turns: model.turns, strangers: model.strangers }
    },
    async restart() {
      await gateway.close()
      gateway = await start(Number(new URL(mcpUrl).port))
    },
    async offers(wanted) {
      await poll(() => gateway.gateway.servers.get(undefined, 'rec').tools.find(({ name }) => name === wanted))
      await acceptTools(gateway, 'rec')
    },
    calls: () =>
      poll(async () => {
        const calls = await recordedCalls(gateway)
        return calls.every(({ endedAt }) => endedAt) ? calls : undefined
      }),
    received: () => readRecord(file),
    async person() {
      const { name } = await firstAdministrator(gateway)
      const browser = await launch()
      const { page } = await openWindow(browser)
      await signIn(page, gateway, name)
      page.setDefaultTimeout(60_000) // an agent takes its time to begin
      const open = () => page.getByRole('button', { name: 'Write thing' }).click()
      return {
        async approve() {
          await open()
          await page.getByRole('button', { name: 'Approve once' }).click()
        },
        async deny(reason) {
          await open()
          await page.getByRole('button', { name: 'Deny…' }).click()
          await page.getByLabel('Reason').fill(reason)
          await page.getByRole('button', { name: 'Deny', exact: true }).click()
        },
        [Symbol.asyncDispose]: () => browser.close(),
      }
    },
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
