import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ClientName } from '../../src/contract/client.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import {
  getCodec,
  type NamedServer,
  readClient,
  removeServer,
  type StatedServer,
  writeServers,
} from '../../src/formats/formats.ts'

const variable = fc.constantFrom('${API_KEY}', '${OTHER}', '${LEVEL:-warn}', '$${literal}')
const word = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 12 }).map((text) => text.replaceAll('$', '('))
const text = fc.oneof(
  word,
  variable,
  fc.tuple(word, variable, word).map((parts) => parts.join('')),
)
const plainName = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,8}$/)
const texts = fc.dictionary(plainName, text, { maxKeys: 4 })
const tools = fc.record(
  {
    include: fc.array(fc.constantFrom('a', 'b', 'c*'), { maxLength: 2 }),
    exclude: fc.array(plainName, { maxLength: 2 }),
  },
  { requiredKeys: [] },
)
const common = {
  enabled: fc.boolean(),
  title: fc.constant('Title of a server'),
  description: word,
  tools,
  timeout: fc.record(
    { connect: fc.integer({ min: 100, max: 99_999 }), call: fc.integer({ min: 10, max: 99_999 }) },
    { requiredKeys: [] },
  ),
  defaultRisk: fc.constantFrom('read' as const, 'danger' as const),
  trust: fc.constant('none' as const),
}
const stdio = fc.record(
  {
    transport: fc.constant('stdio' as const),
    command: word,
    args: fc.array(text, { maxLength: 3 }),
    env: texts,
    cwd: fc.constant('/srv'),
    ...common,
  },
  { requiredKeys: ['transport', 'command'] },
)
const url = fc.constantFrom('https://a.example.com/mcp', 'https://b.example.com/${PATH_PART}/sse', '${ADDRESS}')
const remote = fc.record(
  { transport: fc.constantFrom('http' as const, 'sse' as const), url, headers: texts, ...common },
  { requiredKeys: ['transport', 'url'] },
)
const servers = fc.dictionary(plainName, fc.oneof(stdio, remote), { minKeys: 1, maxKeys: 3 })
const starts: Readonly<Record<string, readonly string[]>> = {
  jsonc: ['', '{}', '{\n  // mine\n  "other": { "a": 1 }, // beside it\n}\n'],
  yaml: ['', '# mine\nother: { a: 1 } # beside it\n'],
  toml: ['', '# mine\n[other]\na = 1 # beside it\n'],
}

function write(client: ClientName, start: string, wanted: readonly NamedServer[]) {
  const writing = writeServers(getCodec(client), start, wanted)
  if (!writing.ok) throw new Error(writing.message)
  return writing
}

function read(client: ClientName, written: string): Map<string, StatedServer> {
  const reading = readClient(client, written)
  if (!reading.ok) throw new Error(reading.message)
  return new Map(reading.servers.map(({ key, definition }) => [key, definition]))
}

/** With every default, so that a field that is left out equals one that states the default. */
const complete = (definition: unknown) => ServerDefinition.parse(definition)

describe.each(ClientName.options)('servers that are written for %s', (client) => {
  const { format } = getCodec(client)

  it('are read as the same servers, except for what the notes say', () => {
    fc.assert(
      fc.property(servers, fc.constantFrom(...(starts[format] ?? [''])), (definitions, start) => {
        const wanted = Object.entries(definitions).map(([name, definition]) => ({ name, definition }))
        const writing = write(client, start, wanted)
        const found = read(client, writing.text)
        expect(writing.text).toContain(start === '' || start === '{}' ? '' : 'beside it')
        for (const { name, key, notes, refused } of writing.servers) {
          if (refused !== undefined) {
            expect(found.has(key)).toBe(false)
            continue
          }
          const [before, after] = [complete(definitions[name]), complete(found.get(key))]
          const noted = notes.map(({ field }) => field.split('.')[0])
          for (const [field, value] of Object.entries(before)) {
            if (noted.includes(field)) continue
            expect(after, `${field} of ${name}`).toMatchObject({ [field]: value })
          }
        }
      }),
      { numRuns: 20 },
    )
  })

  it('stay the same when they are read and written again, and leave no byte when they are removed', () => {
    fc.assert(
      fc.property(servers, fc.constantFrom(...(starts[format] ?? [''])), (definitions, start) => {
        const wanted = Object.entries(definitions).map(([name, definition]) => ({ name, definition }))
        const first = write(client, start, wanted)
        // No program but Sallyport can write a literal ${, and the note says so.
        fc.pre(!JSON.stringify(wanted).includes('literal'))
        const again = [...read(client, first.text)].map(([name, definition]) => ({ name, definition }))
        expect(write(client, first.text, again).text).toBe(first.text)
        const without = first.servers
          .filter(({ refused }) => refused === undefined)
          .reduce((left, { key }) => {
            const removal = removeServer(getCodec(client), left, key)
            if (!removal.ok) throw new Error(removal.message)
            return removal.text
          }, first.text)
        expect(read(client, without).size).toBe(0)
        if (start.includes('mine')) expect(without.startsWith(start.trimEnd().slice(0, -2))).toBe(true)
      }),
      { numRuns: 12 },
    )
  })
})
