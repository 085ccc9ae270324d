import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const source = join(root, 'src')

/** The order of reading and of dependency: a folder imports only from its left. */
const order = [
  'contract',
  'shared',
  'lib',
  'documents',
  'formats',
  'wire',
  'storage',
  'masking',
  'audit',
  'identity',
  'config',
  'server-files',
  'secrets',
  'policy',
  'servers',
  'gallery',
  'repositories',
  'imports',
  'definitions',
  'pins',
  'catalog',
  'approvals',
  'calls',
  'agents',
  'automations',
  'notify',
  'removal',
  'projects',
  'status',
  'gateway',
  'library',
  'mcp',
  'http',
  'cli',
]
/** Shelves: every file is a door. */
const shelves = new Set(['contract', 'shared', 'lib', 'documents', 'wire', 'storage'])
/** `http` has two doors: the listener with everything behind it, and the start of it all. */
const doors: Readonly<Record<string, readonly string[]>> = { http: ['serve.ts'], cli: ['main.ts'] }

type Import = { readonly from: string; readonly to: string }

async function files(folder = source): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name)).map((e) => join(e.parentPath, e.name))
}

function importsOf(file: string, pattern = everyImport): Import[] {
  const found = readFileSync(file, 'utf8').matchAll(pattern)
  return [...found]
    .map(([, target = '']) => ({ from: relative(source, file), to: relative(source, resolve(dirname(file), target)) }))
    .filter(({ to }) => !to.startsWith('..'))
}

const everyImport = /(?:from|import)\s*\(?\s*'(\.[^']+)'/g
/** Types are gone when the program runs: only what is left can run in a circle. */
const runningImport = /^(?:import|export)\s+(?!type\b)(?!\{(?:\s*type\s+\w+,?)+\s*\})[^';]*?from\s*'(\.[^']+)'/gm

async function allImports(): Promise<Import[]> {
  return (await files()).flatMap((file) => importsOf(file))
}

const folderOf = (path: string): string => path.split('/')[0] ?? ''

/** What breaks the order among some imports; a wrong import must be found, or the test proves nothing. */
function disordered(imports: readonly Import[]): string[] {
  return imports
    .filter(
      ({ from, to }) => order.indexOf(folderOf(to)) > order.indexOf(folderOf(from)) || !order.includes(folderOf(to)),
    )
    .map(({ from, to }) => `${from} imports ${to}`)
}

function pastTheDoor(imports: readonly Import[]): string[] {
  return imports
    .filter(({ from, to }) => {
      const folder = folderOf(to)
      if (folder === folderOf(from) || shelves.has(folder)) return false
      return !(doors[folder] ?? [`${folder}.ts`]).includes(to.slice(folder.length + 1))
    })
    .map(({ from, to }) => `${from} imports ${to}`)
}

it('imports only from folders on the left', async () => {
  expect(disordered(await allImports())).toEqual([])
  expect(disordered([{ from: 'wire/peer.ts', to: 'servers/link.ts' }])).toHaveLength(1)
})

it('enters a folder only through its door', async () => {
  expect(pastTheDoor(await allImports())).toEqual([])
  expect(pastTheDoor([{ from: 'calls/calls.ts', to: 'catalog/view.ts' }])).toHaveLength(1)
})

/** Within the CLI: what draws and reads, then the client of the gateway, then the commands and the stdio bridge. */
const cliOrder = ['terminal', 'client', 'commands']

it('imports within the CLI only from folders on the left', async () => {
  const place = (path: string) => cliOrder.indexOf(path.split('/')[1] ?? '')
  const wrong = (imports: readonly Import[]) =>
    imports.filter(({ from, to }) => place(from) >= 0 && folderOf(to) === 'cli' && place(to) > place(from))
  expect(wrong(await allImports())).toEqual([])
  expect(wrong([{ from: 'cli/terminal/table.ts', to: 'cli/client/client.ts' }])).toHaveLength(1)
})

/** The shelves that run in a browser as well. */
const browserShelves = ['src/contract/', 'src/shared/']

/** The dashboard shares these shelves and nothing else, neither of the sources nor of Node. */
function pastTheShelves(file: string, text: string, own: string): string[] {
  const targets = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, target = '']) => target)
  const wrong = targets.filter((target) => {
    if (!target.startsWith('.')) return target.startsWith('node:')
    const place = relative(root, resolve(dirname(file), target))
    return ![own, ...browserShelves].some((folder) => place.startsWith(folder))
  })
  return wrong.map((target) => `${relative(root, file)} imports ${target}`)
}

it('lets the dashboard import the shelves that run in a browser, and nothing else', async () => {
  const found = await files(join(root, 'web', 'src'))
  expect(found.length).toBeGreaterThan(10)
  expect(found.flatMap((file) => pastTheShelves(file, readFileSync(file, 'utf8'), 'web/'))).toEqual([])
  const file = join(root, 'web', 'src', 'lib', 'x.ts')
  for (const target of ['../../../src/policy/policy.ts', 'node:fs', '../../../test/support/gateway.ts'])
    expect(pastTheShelves(file, `import { x } from '${target}'`, 'web/')).toHaveLength(1)
})

it('keeps the shared shelf free of everything that a browser does not have', async () => {
  const found = await files(join(source, 'shared'))
  expect(found.length).toBeGreaterThan(2)
  expect(found.flatMap((file) => pastTheShelves(file, readFileSync(file, 'utf8'), 'src/shared/'))).toEqual([])
})

it('knows every folder of the source', async () => {
  const folders = (await readdir(source, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  expect(folders.map(({ name }) => name).filter((name) => !order.includes(name))).toEqual([])
})

it('has no circle among its files', async () => {
  const graph = new Map<string, string[]>()
  for (const { from, to } of (await files()).flatMap((file) => importsOf(file, runningImport))) {
    graph.set(from, [...(graph.get(from) ?? []), to])
  }
  expect(circles(graph)).toEqual([])
  expect(
    circles(
      new Map([
        ['a', ['b']],
        ['b', ['a']],
      ]),
    ),
  ).not.toEqual([])
})

function circles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const found: string[] = []
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) return void found.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    for (const next of graph.get(file) ?? []) visit(next, [...path, file])
    done.add(file)
  }
  for (const file of graph.keys()) visit(file, [])
  return found
}

it('names protocol dates only inside the two codecs', async () => {
  const dates = /2024-11-05|2025-03-26|2025-06-18|2025-11-25|2026-07-28/
  const named = (await files()).filter((file) => dates.test(readFileSync(file, 'utf8')))
  expect(named.map((file) => relative(source, file)).sort()).toEqual(['wire/legacy.ts', 'wire/modern.ts'])
})

it('makes a permit in one file only', async () => {
  const makers = (await files()).filter((file) => /\bas Permit\b/.test(readFileSync(file, 'utf8')))
  expect(makers.map((file) => relative(source, file))).toEqual(['storage/claim.ts'])
})

it('builds the parts in `gateway` and decides nothing there', async () => {
  const found = await files(join(source, 'gateway'))
  expect(found.map((file) => relative(source, file)).sort()).toEqual([
    'gateway/gateway.ts',
    'gateway/types.ts',
    'gateway/version.ts',
  ])
  const decides = /new GatewayError\(|\.role\b|storage\.audit\.append/
  expect(found.filter((file) => decides.test(readFileSync(file, 'utf8')))).toEqual([])
})

const forbidden: readonly { readonly what: string; readonly pattern: RegExp; readonly except?: readonly string[] }[] = [
  { what: 'a shell', pattern: /shell:\s*true|\bexecSync\b|import \{[^}]*\bexec\b[^}]*\} from 'node:child_process'/ },
  { what: 'an ignored check', pattern: /@ts-ignore|@ts-expect-error|biome-ignore/ },
  { what: 'a bare fetch', pattern: /(?<![.\w])fetch\(/, except: ['cli/client/client.ts'] },
  {
    what: 'a file that gets its name without the folder being on disk',
    pattern: /import \{[^}]*\b(?:rename|link|writeFile)(?:Sync)?\b[^}]*\} from 'node:fs/,
    // A configuration is looked at once more before the rename; the others move a folder or a log aside.
    except: ['lib/durable-file.ts', 'config/save.ts', 'servers/folders.ts', 'cli/stdio/background.ts'],
  },
  { what: 'a listener on a signal that is not linked by onAbort', pattern: /'abort'/, except: ['lib/signals.ts'] },
  // Compiled there to see whether clients can, and never run.
  { what: 'an expression made from input', pattern: /new RegExp\(/, except: ['definitions/patterns.ts'] },
]

it.each(forbidden)('contains nowhere $what', async ({ pattern, except = [] }) => {
  const found = (await files()).filter((file) => pattern.test(readFileSync(file, 'utf8')))
  expect(found.map((file) => relative(source, file)).filter((file) => !except.includes(file))).toEqual([])
})

it('registers no hook by the import of a module that several tests share', async () => {
  const entries = await readdir(join(root, 'test'), { recursive: true, withFileTypes: true })
  const shared = entries
    .filter(({ name }) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map(({ parentPath, name }) => join(parentPath, name))
  const hook = /^(?:before|after)(?:All|Each)\(/m
  expect(shared.length).toBeGreaterThan(50)
  expect(shared.filter((file) => hook.test(readFileSync(file, 'utf8')))).toEqual([])
})

it('mocks no module, skips and focuses no test', async () => {
  const entries = await readdir(join(root, 'test'), { recursive: true, withFileTypes: true })
  const tests = entries
    .filter((entry) => entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
  const forbiddenCalls = new RegExp(['vi\\.mock', '\\b(?:it|test|describe)\\.(?:skip|only|todo)'].join('|'))
  expect(tests.filter((file) => forbiddenCalls.test(readFileSync(file, 'utf8')))).toEqual([])
})

/** The files of a walk in ARCHITECTURE.md, in order. A name without a folder is in the folder of the name before it. */
function walkOf(title: string): string[] {
  const [, section = ''] = architecture().split(`\n## ${title}\n`)
  const [body = ''] = section.split('\n## ')
  const cells = body.split('\n').flatMap((line) => /^\| (`.*?) \| /.exec(line)?.[1] ?? [])
  let folder = ''
  return cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+\.ts)`/g)].map(([, name = '']) => {
      const path = name.includes('/') ? name : `${folder}/${name}`
      folder = dirname(path)
      return path
    }),
  )
}

function architecture(): string {
  return readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
}

it.each(['A call, file by file', 'An approval, file by file', 'A change, file by file'])(
  'walks only through files that exist: %s',
  async (title) => {
    const known = new Set((await files()).map((file) => relative(source, file)))
    const walk = walkOf(title)
    expect(walk.length).toBeGreaterThan(5)
    expect(walk.filter((file) => !known.has(file))).toEqual([])
  },
)

it('walks a call through at most 30 files and 22 crossings between folders', () => {
  const walk = walkOf('A call, file by file')
  const crossings = walk.filter((file, index) => index > 0 && folderOf(file) !== folderOf(walk[index - 1] ?? ''))
  expect(new Set(walk).size).toBeLessThanOrEqual(30)
  expect(crossings.length).toBeLessThanOrEqual(22)
})

it('describes every folder on two screens', async () => {
  const text = architecture()
  expect(text.split('\n').length).toBeLessThanOrEqual(120)
  const folders = new Set((await files()).map((file) => folderOf(relative(source, file))))
  expect([...folders].filter((folder) => !text.includes(`\`src/${folder}\``))).toEqual([])
})
