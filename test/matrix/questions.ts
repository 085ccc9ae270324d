import { expect } from 'vitest'
import { toFields } from '../fixtures/lib/json-rpc.ts'
import { textOf } from '../scenarios/mcp/raw.ts'
import type { MatrixClient } from './client.ts'
import { type Drives, freshKey, itemsIn, noticedBy, type Stage } from './stage.ts'
import type { FeatureName } from './table.ts'

/** What servers ask, and how their questions reach the agent. */
export const questions = {
  async sampling({ client }) {
    const result = await client.callTool({ name: 'test_sampling', arguments: { prompt: 'Who speaks?' } })
    expect(textOf(result)).toBe('LLM response: by a model')
    expect(client.asked).toMatchObject([{ method: 'sampling/createMessage', params: { maxTokens: 100 } }])
  },
  async 'elicitation-form'({ client }) {
    const result = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who are you?' } })
    expect(textOf(result)).toContain('"username":"ada"')
    expect(client.asked).toMatchObject([{ method: 'elicitation/create', params: { message: 'Who are you?' } }])
  },
  async 'elicitation-url'({ client }) {
    const result = await client.callTool({ name: 'visit', arguments: { key: freshKey() } })
    expect(textOf(result)).toBe('visited: accept')
    expect(client.asked).toMatchObject([{ params: { mode: 'url', url: 'https://example.com/sign-in' } }])
  },
  async 'elicitation-complete'({ client, until }) {
    const told = await until(async () => {
      const key = freshKey()
      await client.callTool({ name: 'visit', arguments: { key } })
      const done = client.heard.find(({ method }) => method === 'notifications/elicitation/complete')
      return done && { key, params: toFields(done.params) }
    })
    expect(told.params.elicitationId).toBe(`visit-${told.key}`)
  },
  async roots({ client }) {
    const result = await client.callTool({ name: 'test_input_required_result_list_roots' })
    expect(textOf(result)).toContain('file:///matrix')
  },
  async 'roots-changed'({ client, until }) {
    const count = async () =>
      (await noticedBy(client)).filter((note) => note === 'notifications/roots/list_changed').length
    const before = await count()
    await client.changeRoots()
    await until(async () => (await count()) > before || undefined)
  },
  async 'questions-together'({ client }) {
    const result = await client.callTool({ name: 'test_input_required_result_multiple_inputs' })
    expect(textOf(result)).toContain('by a model Ada [{"uri":"file:///matrix"')
    expect(client.asked.map(({ method }) => method).toSorted()).toEqual([
      'elicitation/create',
      'roots/list',
      'sampling/createMessage',
    ])
  },
  async 'questions-elsewhere'({ client }) {
    const prompt = await client.getPrompt({ name: 'test_input_required_result_prompt' })
    expect(JSON.stringify(prompt.messages)).toContain('a test')
    const [content] = itemsIn(await client.readResource('test://asking-resource'), 'contents')
    expect(content?.text).toContain('Ada')
  },
  async 'questions-lacking'({ connect }) {
    const bare = await connect({ bare: true })
    const call = bare.callTool({ name: 'test_sampling', arguments: { prompt: 'Who speaks?' } })
    if (bare.era === 'legacy') return expect(await call).toMatchObject({ isError: true })
    await expect(call).rejects.toThrow()
    expect(bare.refused).toMatchObject([{ code: -32021, data: { requiredCapabilities: { sampling: {} } } }])
  },
  async 'questions-unprompted'({ client, until }) {
    const key = freshKey()
    expect(await askLater(client, until, { key })).toBe(`answered ${key} by a model`)
  },
} satisfies Partial<Drives<FeatureName>>

/** What became of a question that a server asks while no call is under way. */
export async function askLater(
  client: MatrixClient,
  until: Stage['until'],
  given: { key: string; roots?: string },
): Promise<string | undefined> {
  const stop = await client.watch({ uris: ['test://watched-resource'] })
  await client.callTool({ name: 'ask_later', arguments: given })
  await until(() => client.heard.find(({ method }) => method === 'notifications/resources/updated')).finally(stop)
  return (await noticedBy(client)).find((note) => note.includes(given.key))
}
