import { expect } from 'vitest'
import { textOf } from '../scenarios/mcp/raw.ts'
import { type Drives, inspectedBy, itemsIn } from './stage.ts'
import type { FeatureName } from './table.ts'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

/** What servers offer: tools, resources and prompts. */
export const offers = {
  async 'tools-list'({ client }) {
    const names = itemsIn(await client.listTools(), 'tools').map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['test_simple_text', 'describe_city']))
  },
  async 'tools-call'({ client }) {
    const result = await client.callTool({ name: 'test_simple_text' })
    expect(textOf(result)).toBe('This is a simple text response for testing.')
  },
  async 'tools-contents'({ client }) {
    const mixed = await client.callTool({ name: 'test_multiple_content_types' })
    expect(itemsIn(mixed, 'content').map(({ type }) => type)).toEqual(['text', 'image', 'resource'])
    const sound = await client.callTool({ name: 'test_audio_content' })
    expect(itemsIn(sound, 'content')).toMatchObject([{ type: 'audio', mimeType: 'audio/wav' }])
  },
  async 'tools-structured'({ client }) {
    const listed = itemsIn(await client.listTools(), 'tools').find(({ name }) => name === 'describe_city')
    expect(listed?.outputSchema).toMatchObject({ required: ['city', 'people'] })
    const result = await client.callTool({ name: 'describe_city', arguments: { city: 'Oslo' } })
    expect(result.structuredContent).toEqual({ city: 'Oslo', people: 42 })
  },
  async 'tools-failure'({ client }) {
    const result = await client.callTool({ name: 'test_error_handling' })
    expect(result.isError).toBe(true)
    expect(textOf(result)).toBe('This tool intentionally returns an error for testing')
  },
  async 'tools-icons'({ client }) {
    const listed = itemsIn(await client.listTools(), 'tools').find(({ name }) => name === 'describe_city')
    expect(listed?.icons).toMatchObject([{ src: 'https://example.com/city.png', sizes: ['48x48'] }])
  },
  async 'tools-annotations'({ client }) {
    const listed = itemsIn(await client.listTools(), 'tools').find(({ name }) => name === 'describe_city')
    expect(listed).toMatchObject({
      title: 'Describe a city',
      annotations: { title: 'City', readOnlyHint: true, idempotentHint: true, openWorldHint: false },
      _meta: { 'example.com/kind': 'city' },
    })
  },
  async 'meta-sent'({ client }) {
    const { meta } = await inspectedBy(client, { traceparent, 'example.com/sent': 1 })
    expect(meta).toMatchObject({ traceparent, 'example.com/sent': 1 })
  },
  async 'meta-received'({ client }) {
    const result = await client.callTool({ name: 'inspect', _meta: { traceparent } })
    expect(result._meta).toMatchObject({ traceparent, 'example.com/answered': true })
  },
  async 'resources-list'({ client }) {
    const listed = itemsIn(await client.listResources(), 'resources')
    expect(listed).toContainEqual(expect.objectContaining({ uri: 'test://static-text', mimeType: 'text/plain' }))
  },
  async 'resources-text'({ client }) {
    const [content] = itemsIn(await client.readResource('test://static-text'), 'contents')
    expect(content).toMatchObject({ text: 'This is the content of the static text resource.' })
  },
  async 'resources-binary'({ client }) {
    const [content] = itemsIn(await client.readResource('test://static-binary'), 'contents')
    expect(Buffer.from(String(content?.blob), 'base64').subarray(1, 4).toString()).toBe('PNG')
  },
  async 'resources-templates'({ client }) {
    const templates = itemsIn(await client.listTemplates(), 'resourceTemplates')
    expect(templates).toMatchObject([{ uriTemplate: 'test://template/{id}/data' }])
    const [content] = itemsIn(await client.readResource('test://template/7/data'), 'contents')
    expect(content?.text).toContain('Data for ID: 7')
  },
  async 'resources-missing'({ client }) {
    const number = client.era === 'legacy' ? -32002 : -32602
    for (const uri of ['test://never-heard-of', 'test://gone']) {
      await expect(client.readResource(uri)).rejects.toThrow()
      expect(client.refused.pop(), uri).toMatchObject({ code: number })
    }
  },
  async 'prompts-list'({ client }) {
    const names = itemsIn(await client.listPrompts(), 'prompts').map(({ name }) => name)
    expect(names).toContain('test_prompt_with_arguments')
  },
  async 'prompts-get'({ client }) {
    const given = { arg1: 'one', arg2: 'two' }
    const result = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: given })
    const text = "Prompt with arguments: arg1='one', arg2='two'"
    expect(itemsIn(result, 'messages')).toMatchObject([{ role: 'user', content: { text } }])
  },
  async pages({ client }) {
    const first = await client.request('prompts/list', {})
    const { nextCursor } = first
    if (typeof nextCursor !== 'string') throw new Error('The list has one page only')
    const second = await client.listPrompts(nextCursor)
    expect(second.nextCursor).toBeUndefined()
    const names = [first, second].flatMap((page) => itemsIn(page, 'prompts').map(({ name }) => name))
    expect(new Set(names).size).toBe(names.length)
    expect(names).toContain('filler_2099')
  },
  async completion({ client }) {
    const prompt = { type: 'ref/prompt' as const, name: 'test_prompt_with_arguments' }
    const template = { type: 'ref/resource' as const, uri: 'test://template/{id}/data' }
    const argument = await client.complete({ ref: prompt, argument: { name: 'arg1', value: 'par' } })
    const variable = await client.complete({ ref: template, argument: { name: 'id', value: 'te' } })
    expect(argument.completion).toMatchObject({ values: ['paris', 'park', 'party'] })
    expect(variable.completion).toMatchObject({ values: ['test', 'testing'] })
  },
} satisfies Partial<Drives<FeatureName>>
