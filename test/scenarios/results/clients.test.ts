import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { textOf } from '../mcp/raw.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({
    servers: { rec: stdioFixture('recording'), old: stdioFixture('conformance', ['--era', 'legacy']) },
    rules: [{ action: 'allow' }],
    limits: { result: 1024 },
  })
})
afterAll(() => gateway?.close())

const clients = [
  { name: 'SDK v1', connect: () => gateway.connectV1('reader') },
  { name: 'SDK v2, sessions', connect: () => gateway.connectV2('reader', { mode: 'legacy' }) },
  { name: 'SDK v2, stateless', connect: () => gateway.connectV2('reader') },
]

describe.each(clients)('the official client $name', ({ connect }) => {
  it('takes a result of a tool with an output schema, whether it was cut or was too large', async () => {
    const client = await connect()
    await client.listTools() // from here on the client checks what it gets against the schemas
    const cut = await client.callTool({ name: 'rec_rows', arguments: { count: 1000 } })
    expect(toFields(cut.structuredContent).rows).toHaveLength(1000)
    expect(textOf(cut)).toContain('[cut by Sallyport: 1024 of ')
    const large = await client.callTool({ name: 'rec_rows', arguments: { count: 5000 } })
    expect(large).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^result-too-large/) }] })
    expect(await client.callTool({ name: 'rec_structured', arguments: {} })).toMatchObject({
      structuredContent: { answer: 42 },
    })
  })

  it('reads on in a long resource and a long prompt as it does in a result', async () => {
    const client = await connect()
    const id = 'x'.repeat(1500)
    const { contents } = await client.readResource({ uri: `test://template/${id}/data` })
    const { text } = toFields(contents[0])
    const [, given = '{}'] = /\n\[Read the rest with sallyport_read_result (.*)\]$/.exec(String(text)) ?? []
    const rest = await client.callTool({ name: 'sallyport_read_result', arguments: JSON.parse(given) })
    const shown = String(text).slice(0, 1024)
    expect(`${shown}${textOf(rest)}`.startsWith(`{"id":"${id}"`)).toBe(true)
    const { messages } = await client.getPrompt({
      name: 'old_test_prompt_with_arguments',
      arguments: { arg1: 'y'.repeat(2000), arg2: 'z' },
    })
    expect(toFields(messages[0]?.content).text).toMatch(/y\n\[cut by Sallyport: 1024 of 2\d\d\d characters\]\n/)
  })
})
