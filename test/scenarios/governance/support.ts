import { join } from 'node:path'
import type { CallOutcome } from '../../../src/calls/calls.ts'
import type { ViewSelector } from '../../../src/catalog/catalog.ts'
import type { JsonObject } from '../../../src/contract/json.ts'
import type { Principal } from '../../../src/contract/principal.ts'
import type { Tool } from '../../../src/contract/tool.ts'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { temporaryFolder } from '../../storage/support.ts'
import type { TestGateway } from '../../support/gateway.ts'

export const everything: ViewSelector = { kind: 'all' }

export function agent(name: string): Principal {
  return { kind: 'agent', name }
}

/** A recording server as the configuration states it, with the file that it keeps for itself. */
export function recordingServer(...args: string[]) {
  const record = join(temporaryFolder(), 'record.jsonl')
  return {
    server: stdioFixture('recording', ['--record', record, ...args]),
    /** The names of the tools that were called, in order. */
    received: async () => (await readRecord(record)).map(({ name }) => name),
    lines: () => readRecord(record),
  }
}

export type Asked = {
  as?: string
  given?: JsonObject
  selector?: ViewSelector
  signal?: AbortSignal
}

export function call({ gateway }: Pick<TestGateway, 'gateway'>, name: string, asked: Asked = {}): Promise<CallOutcome> {
  const { as = 'tester', given = {}, selector = everything, signal = new AbortController().signal } = asked
  return gateway.calls.run({ principal: agent(as), surface: 'library', selector, name, arguments: given }, { signal })
}

export function textOf(outcome: CallOutcome): string {
  if (outcome.kind === 'refused') throw outcome.error
  if (outcome.kind === 'waiting') throw new Error(`It waits for ${outcome.approval.id}`)
  const [first] = [outcome.answer.value().content].flat()
  const { text } = Object(first)
  return String(text)
}

export function toolsOf({ gateway }: Pick<TestGateway, 'gateway'>, as = 'tester', selector = everything): Tool[] {
  return gateway.catalog.listTools(agent(as), selector)
}

export function namesOf(gateway: Pick<TestGateway, 'gateway'>, as = 'tester', selector = everything): string[] {
  return toolsOf(gateway, as, selector).map(({ name }) => name)
}
