import { expect } from 'vitest'
import { parseJson, toFields } from '../fixtures/lib/json-rpc.ts'
import { textOf } from '../scenarios/mcp/raw.ts'
import { declaredExtension } from './client.ts'
import { type Drives, inspectedBy } from './stage.ts'
import type { FeatureName } from './table.ts'

/** What both sides say of themselves, and what travels beside the requests. */
export const protocol = {
  async ping({ client }) {
    await client.ping()
  },
  async 'cache-hints'({ client }) {
    const lists = [client.listTools(), client.listPrompts(), client.listResources(), client.listTemplates()]
    const answers = await Promise.all([...lists, client.readResource('test://static-text')])
    for (const answer of answers) {
      expect(answer.cacheScope).toBe('private')
      expect(answer.ttlMs).toBeTypeOf('number')
    }
  },
  async instructions({ client }) {
    expect(client.instructions()).toBe('A fixture')
  },
  async 'extensions-offered'({ client }) {
    expect(client.capabilities().extensions).toMatchObject({ 'example.com/matrix': { depth: 3 } })
  },
  async 'extensions-declared'({ client }) {
    const { capabilities } = await inspectedBy(client)
    expect(capabilities.extensions).toMatchObject({ [declaredExtension]: { since: 1 } })
  },
  async 'parameter-headers'({ client }) {
    await client.listTools() // what it has seen marked, a client repeats in headers
    const given = { region: 'Zürich', query: 'plain' }
    const result = await client.callTool({ name: 'test_header_parameters', arguments: given })
    expect(toFields(parseJson(textOf(result) ?? ''))).toEqual(given)
  },
  async tasks({ client, until }) {
    const wanted = client.era === 'legacy' ? { task: { ttl: 60_000 } } : {}
    const given = { seconds: 0.02, label: 'at leisure' }
    const started = await client.request('tools/call', { name: 'slow_compute', arguments: given, ...wanted })
    const { taskId } = client.era === 'legacy' ? toFields(started.task) : started
    expect(taskId).toBeTypeOf('string')
    const task = await until(async () => {
      const found = await client.request('tasks/get', { taskId })
      return found.status === 'completed' ? found : undefined
    })
    const result = client.era === 'legacy' ? await client.request('tasks/result', { taskId }) : task.result
    expect(textOf(result)).toBe('Computed at leisure')
  },
} satisfies Partial<Drives<FeatureName>>
