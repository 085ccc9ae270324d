import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseTemplate } from '../../src/config/config.ts'
import { GalleryConnection, GalleryEntry, OwnGalleryEntry } from '../../src/contract/gallery.ts'
import { builtIn } from '../../src/gallery/data.ts'
import { fill } from '../../src/gallery/fill.ts'

const folder = join(import.meta.dirname, '../../src/gallery/entries')
const entries = [...builtIn.values()]
const connections = entries.flatMap((entry) =>
  entry.connections.map((connection) => ({ entry, connection, label: `${entry.id} ${connection.id}` })),
)

function textsOf(connection: GalleryConnection): { arguments: string[]; address: string[]; others: string[] } {
  if (connection.transport !== 'stdio')
    return { arguments: [], address: [connection.url], others: Object.values(connection.headers) }
  return { arguments: [connection.command, ...connection.args], address: [], others: Object.values(connection.env) }
}

function namesIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) => {
    const template = parseTemplate(text)
    if (!template.ok) throw new Error(`${text} ${template.message}`)
    return template.pieces.flatMap((piece) => (piece.kind === 'variable' ? [piece.name] : []))
  })
}

describe('the entries of the gallery', () => {
  it('are at least 50, and no id is used twice', async () => {
    const files = await readdir(folder)
    const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
    const all = texts.flatMap((text) => z.array(GalleryEntry).parse(JSON.parse(text)))
    expect(all.length).toBeGreaterThanOrEqual(50)
    expect(all.map(({ id }) => id).sort()).toEqual([...builtIn.keys()].sort())
  })

  it('say how, when and where each fact was verified, and never from memory', () => {
    for (const { id, verified } of entries) {
      expect(verified, id).toBeDefined()
      expect(verified?.source, id).not.toMatch(/memory/i)
    }
    const started = entries.filter(({ verified }) => verified?.how === 'started')
    expect(started.length).toBeGreaterThanOrEqual(12)
    for (const { id, connections: ways } of started)
      expect(
        ways.some(({ started: run }) => run !== undefined),
        id,
      ).toBe(true)
  })

  it('have a link to documentation, except the one that is about any server', () => {
    expect(entries.filter(({ docs }) => docs === undefined).map(({ id }) => id)).toEqual(['custom'])
  })

  it.each(connections)(
    '$label: declares every variable that it uses, and uses every variable that it declares',
    ({ connection }) => {
      const texts = textsOf(connection)
      const used = namesIn([...texts.arguments, ...texts.address, ...texts.others])
      expect([...new Set(used)].sort()).toEqual(connection.variables.map(({ name }) => name).sort())
      const named = (names: readonly string[]) => connection.variables.filter(({ name }) => names.includes(name))
      expect(
        named(namesIn(texts.arguments)).filter(({ secret }) => secret),
        'secrets in arguments',
      ).toEqual([])
      expect(named(namesIn(texts.address)).filter(({ secret, required }) => secret || !required)).toEqual([])
    },
  )

  it.each(connections)('$label: gives a valid definition', ({ entry, connection }) => {
    const values = Object.fromEntries(
      connection.variables.map(({ name, example }) => [name, example ?? 'https://a.example']),
    )
    const hosts = Object.fromEntries(connection.variables.map(({ name, example }) => [name, example ?? 'a.example']))
    const variables = connection.variables.map((variable) => ({ ...variable, state: 'given' as const }))
    const part = connection.transport !== 'stdio' && connection.url.startsWith('https://')
    const definition = fill({ entry, connection, variables, values: part ? hosts : values, mayChooseRisk: true })
    expect(definition).toMatchObject({ transport: connection.transport, description: entry.purpose })
  })

  it('start programs from npm in one exact version', () => {
    const packages = connections.flatMap(({ connection }) =>
      connection.transport === 'stdio' && connection.command === 'npx' ? [connection] : [],
    )
    for (const { args, started } of packages) {
      const version = /^(?:@[\w.-]+\/)?[\w.-]+@(\d+\.\d+\.\d+)$/.exec(args[1] ?? '')?.[1]
      expect(args[0], args[1]).toBe('-y')
      expect(version, args[1]).toBeDefined()
      if (started) expect(started.version).toBe(version)
    }
  })

  it('use a name of a variable in one entry only, so that no server gets the secret of another', () => {
    const owners = new Map<string, Set<string>>()
    for (const { entry, connection } of connections) {
      for (const { name } of connection.variables) owners.set(name, (owners.get(name) ?? new Set()).add(entry.id))
    }
    expect([...owners].filter(([, ids]) => ids.size > 1)).toEqual([])
  })

  it('contain PostHog with a bearer token, Context7 with its own header, Playwright on another machine, and Custom', () => {
    const find = (id: string, way: string) => builtIn.get(id)?.connections.find((connection) => connection.id === way)
    expect(find('posthog', 'remote')).toMatchObject({ headers: { Authorization: 'Bearer ${POSTHOG_API_KEY}' } })
    expect(find('context7', 'remote')).toMatchObject({ headers: { CONTEXT7_API_KEY: '${CONTEXT7_API_KEY}' } })
    expect(find('playwright', 'self-hosted')).toMatchObject({ transport: 'http' })
    expect(builtIn.get('playwright')?.guidance).toContain('--port 8931')
    expect(builtIn.get('custom')?.guidance).toContain('servers add NAME --url')
  })
})

const own = {
  title: 'Own',
  purpose: 'Own server.',
  connections: [{ id: 'remote', title: 'Own', transport: 'http', url: 'https://own.example/mcp' }],
}

describe('an entry', () => {
  it.each([
    ['a link that runs a script', { docs: 'javascript:alert(1)' }],
    ['a suggestion that lowers a risk', { risk: { default: 'read' } }],
    ['no connection', { connections: [] }],
    ['two connections of one id', { connections: [own.connections[0], own.connections[0]] }],
    ['an unknown field', { install: 'curl' }],
  ])('is refused with %s', (_what, change) => {
    expect(OwnGalleryEntry.safeParse(own).success).toBe(true)
    expect(OwnGalleryEntry.safeParse({ ...own, ...change }).success).toBe(false)
  })

  it('is refused with a literal secret, because all users can read it', () => {
    const withHeader = (value: string) => ({ ...own.connections[0], headers: { Authorization: value } })
    expect(GalleryConnection.safeParse(withHeader('Bearer ${TOKEN}')).success).toBe(true)
    expect(GalleryConnection.safeParse(withHeader('Bearer abcdefgh')).success).toBe(false)
  })
})
