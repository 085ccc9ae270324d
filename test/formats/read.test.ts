import { describe, expect, it } from 'vitest'
import { readDocument, recognise } from '../../src/formats/formats.ts'

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
