import { expect } from 'vitest'
import type { Fields } from '../fixtures/lib/json-rpc.ts'
import { toFields } from '../fixtures/lib/json-rpc.ts'
import { textOf } from '../scenarios/mcp/raw.ts'
import type { MatrixClient } from './client.ts'
import { type Drive, type Drives, freshKey, itemsIn, noticedBy } from './stage.ts'
import type { FeatureName } from './table.ts'

const watched = 'test://watched-resource'
const updated = 'notifications/resources/updated'

/** What an agent hears while a call runs, and between calls. */
export const hearing = {
  async progress({ client, until }) {
    const heard = await until(async () => {
      const steps: unknown[] = []
      const onprogress = ({ progress, total }: Fields) => steps.push([progress, total])
      expect(textOf(await client.callTool({ name: 'say_while_working' }, { onprogress }))).toBe('Worked')
      return steps.length >= 3 ? steps : undefined
    })
    expect(heard).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ])
  },
  async logging({ client, until }) {
    await client.logFrom('debug')
    const heard = await until(() => logged(client, 3))
    expect(heard).toEqual(['at debug', 'at info', 'at error'])
  },
  async 'logging-level'({ client, until }) {
    await client.logFrom('error')
    const heard = await until(() => logged(client, 1))
    expect(heard).toEqual(['at error'])
  },
  async cancellation({ client, until }) {
    const key = freshKey()
    const taken = new AbortController()
    const call = client.callTool({ name: 'wait_for_ever', arguments: { key } }, { signal: taken.signal })
    call.catch(() => {})
    await until(async () => (await noticedBy(client)).includes(`waits ${key}`) || undefined)
    taken.abort()
    await expect(call).rejects.toThrow()
    await until(async () => (await noticedBy(client)).includes(`cancelled ${key}`) || undefined)
  },
  'tools-changed': toggling('test_trigger_tool_change', 'tools', async (client) => {
    return itemsIn(await client.listTools(), 'tools').some(({ name }) => name === 'test_added_tool')
  }),
  'prompts-changed': toggling('test_trigger_prompt_change', 'prompts', async (client) => {
    return itemsIn(await client.listPrompts(), 'prompts').some(({ name }) => name === 'test_added_prompt')
  }),
  'resources-changed': toggling('test_trigger_resource_change', 'resources', async (client) => {
    return itemsIn(await client.listResources(), 'resources').some(({ uri }) => uri === 'test://added-resource')
  }),
  async 'resources-followed'({ client, until }) {
    const stop = await client.watch({ uris: [watched] })
    await client.callTool({ name: 'test_trigger_resource_update' })
    const told = await until(() => client.heard.find(({ method }) => method === updated))
    expect(toFields(told.params).uri).toBe(watched)
    await stop()
  },
  async 'resources-unfollowed'({ client, connect, until }) {
    const other = await connect({})
    const stop = await client.watch({ uris: [watched] })
    const stopOther = await other.watch({ uris: [watched] })
    await stop()
    await client.callTool({ name: 'test_trigger_resource_update' })
    // Whoever still follows it proves that the server has told.
    await until(() => other.heard.find(({ method }) => method === updated))
    expect(client.heard.filter(({ method }) => method === updated)).toEqual([])
    await stopOther()
  },
} satisfies Partial<Drives<FeatureName>>

/**
 * What one call logs. What is said on another stream than the answer may come after it on a busy machine, when nobody
 * waits for it any more: then there is too little, and the call is worth repeating.
 */
async function logged(client: MatrixClient, least: number): Promise<unknown[] | undefined> {
  client.heard.length = 0
  await client.callTool({ name: 'say_while_working' })
  const messages = client.heard.filter(({ method }) => method === 'notifications/message')
  return messages.length >= least ? messages.map(({ params }) => toFields(params).data) : undefined
}

/** A thing that the server adds, or takes away again: the agent hears of it and finds the list changed. */
function toggling(trigger: string, kind: string, isThere: (client: MatrixClient) => Promise<boolean>): Drive {
  return async ({ client, until }) => {
    const stop = await client.watch({ lists: true })
    const before = await isThere(client)
    await client.callTool({ name: trigger })
    await until(() => client.heard.find(({ method }) => method === `notifications/${kind}/list_changed`))
    expect(await isThere(client)).toBe(!before)
    await stop()
  }
}
