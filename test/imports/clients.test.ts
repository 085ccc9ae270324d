import { afterAll, beforeAll, expect, it } from 'vitest'
import { ClientName } from '../../src/contract/client.ts'
import { getCodec, type NamedServer, writeServers } from '../../src/formats/formats.ts'
import { administrator, startTestGateway, type TestGateway } from '../support/gateway.ts'

let gate: TestGateway
beforeAll(async () => {
  gate = await startTestGateway({})
})
afterAll(() => gate.close())

const servers: NamedServer[] = [
  {
    name: 'files',
    definition: { transport: 'stdio', command: 'npx', args: ['-y', 'files-server'], env: { LOG_LEVEL: 'warn' } },
  },
  { name: 'search', definition: { transport: 'http', url: 'https://search.example/mcp', headers: { 'X-Team': 'a' } } },
]

it.each(ClientName.options)('recognises what is written for %s, with and without its name', (client) => {
  const writing = writeServers(getCodec(client), '', servers)
  if (!writing.ok) throw new Error(writing.message)
  const written = servers.filter(({ name }) => !writing.servers.find((each) => each.name === name)?.refused)
  for (const named of [client, undefined]) {
    const preview = gate.gateway.imports.preview(administrator, { text: writing.text, client: named })
    const found = preview.servers.map(({ name, outcome, definition }) => ({ name, outcome, definition }))
    expect(found).toMatchObject(written.map(({ name, definition }) => ({ name, outcome: 'new', definition })))
  }
})
