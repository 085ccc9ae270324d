import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ClientName } from '../../src/contract/client.ts'
import { SessionServers } from '../../src/contract/session.ts'
import { parseText } from '../../src/documents/parse.ts'
import {
  getCodec,
  type NamedServer,
  readClient,
  recognise,
  removeServer,
  writeServers,
} from '../../src/formats/formats.ts'

/** A folder for each shape: `input` and what is read from it, and the same servers written into it and into nothing. */
const folders = [...ClientName.options, 'opencode-2'] as const
const at = (folder: string, file: string) => fileURLToPath(new URL(`golden/${folder}/${file}`, import.meta.url))
const toJson = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`

const stated = SessionServers.parse(JSON.parse(readFileSync(at('.', 'servers.json'), 'utf8')))
const servers: NamedServer[] = Object.entries(stated).map(([name, { transport = 'stdio', ...definition }]) => ({
  name,
  definition: { ...definition, transport },
}))

describe.each(folders)('the configuration file of %s', (folder) => {
  const codec = getCodec(ClientName.parse(folder.replace(/-2$/, '')))
  const ending = codec.format === 'jsonc' ? 'json' : codec.format
  const input = readFileSync(at(folder, `input.${ending}`), 'utf8')

  it('is recognised by its shape', () => {
    const parsing = parseText(codec.format, input)
    if (!parsing.ok) throw new Error(parsing.faults[0]?.message)
    const [first] = recognise(parsing.parsed.value)
    // Nothing in the file of Claude Desktop is special: an address without a type is what Cursor writes.
    expect(first?.client).toBe(folder === 'claude-desktop' ? 'cursor' : codec.client)
  })

  it('is read as servers, with a note for everything that is lost', async () => {
    await expect(toJson(readClient(codec.client, input))).toMatchFileSnapshot(at(folder, 'read.json'))
  })

  it('gets servers from Sallyport, keeps its comments and everything else, and has its bytes back without them', async () => {
    const writing = writeServers(codec, input, servers)
    if (!writing.ok) throw new Error(writing.message)
    await expect(writing.text).toMatchFileSnapshot(at(folder, `written.${ending}`))
    await expect(toJson(writing.servers)).toMatchFileSnapshot(at(folder, 'notes.json'))
    const fresh = servers.map(({ name, definition }) => ({ name: `new-${name}`, definition }))
    const added = writeServers(codec, input, fresh)
    if (!added.ok) throw new Error(added.message)
    const written = added.servers.filter(({ refused }) => refused === undefined)
    const without = written.reduce((text, { key }) => {
      const removal = removeServer(codec, text, key)
      if (!removal.ok) throw new Error(removal.message)
      return removal.text
    }, added.text)
    expect(without).toBe(input)
  })
})
