import { describe, expect, it } from 'vitest'
import { getCodec, readDocument, recognise } from '../../src/formats/formats.ts'

describe('a pasted document', () => {
  const document = {
    mcpServers: {
      files: { command: 'npx', args: ['-y', 'files', '${ROOT:-/srv}'], env: { TOKEN: '${TOKEN}' } },
      docs: { type: 'http', url: 'https://docs.example.com/mcp', headers: { Authorization: 'Bearer ${KEY}' } },
      odd: { type: 'ws', url: 'wss://odd.example.com' },
    },
  }

  it('is recognised by its shape, and its servers are read', () => {
    const [codec] = recognise(document)
    if (codec === undefined) throw new Error('not recognised')
    expect(codec.client).toBe('claude-code')
    expect(readDocument(codec, document)).toEqual({
      servers: [
        {
          key: 'files',
          definition: {
            transport: 'stdio',
            command: 'npx',
            args: ['-y', 'files', '${ROOT:-/srv}'],
            env: { TOKEN: '${TOKEN}' },
          },
          notes: [],
          needs: [],
        },
        {
          key: 'docs',
          definition: {
            transport: 'http',
            url: 'https://docs.example.com/mcp',
            headers: { Authorization: 'Bearer ${KEY}' },
          },
          notes: [],
          needs: [],
        },
      ],
      reported: [{ key: 'odd', message: 'uses WebSocket, which Sallyport does not support' }],
    })
  })

  it('of another shape belongs to no program', () => {
    expect(recognise({ name: 'a package', version: '1.0.0' })).toEqual([])
    expect(recognise([])).toEqual([])
    expect(recognise(null)).toEqual([])
  })
})

it.each([
  ['cursor', '${env:'],
  ['vscode', '${input:'],
  ['claude-code', '${A:-'],
  ['gemini-cli', '%A'],
  ['librechat', '{{A'],
] as const)('a long text in the file of %s that only begins references is read without delay', (client, start) => {
  const text = start.repeat(1_000_000 / start.length)
  const entries = {
    long: {
      command: 'x',
      args: [text],
      env: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`V${index}`, '${x}'])),
    },
  }
  const reading = readDocument(getCodec(client), { mcpServers: entries, servers: entries })
  expect(reading.servers).toHaveLength(1)
})

it('takes entries with autoApprove for those of Cline only if nothing in the file is unknown to Cline', () => {
  const local = { command: 'npx', autoApprove: ['read'] }
  const first = (mcpServers: object) => recognise({ mcpServers })[0]?.client
  expect(first({ files: local })).toBe('cline')
  expect(first({ files: { ...local, env: { LEVEL: '${LEVEL:-warn}' } } })).toBe('claude-code')
  expect(first({ files: local, docs: { type: 'http', url: 'https://docs.example.com/mcp' } })).toBe('claude-code')
})
