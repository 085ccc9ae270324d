import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The programs that tests start as separate processes, thousands of times. */
const programs = [
  'test/audit/crashing-gateway',
  'test/calls/once-process',
  'test/cli/command-host',
  'test/conformance/hand-over',
  'test/conformance/official',
  'test/fixtures/asking',
  'test/fixtures/conformance',
  'test/fixtures/era',
  'test/fixtures/hostile',
  'test/fixtures/hostile-http',
  'test/fixtures/matrix',
  'test/fixtures/recording',
  'test/fixtures/sdk-servers/v1',
  'test/fixtures/sdk-servers/v2',
  'test/scenarios/approvals/crashing-gateway',
  'test/scenarios/approvals/unsent-gateway',
  'test/scenarios/changes/crashing-gateway',
  'test/scenarios/secrets/telling-server',
  'test/scenarios/servers/gateway-process',
  'test/secrets/rotating-process',
  'test/storage/claiming-process',
  'test/support/storage-thread',
] as const

export type ProgramName = (typeof programs)[number]

/** Contains the folder with the bundles, for every worker of a test run. */
const variable = 'SALLYPORT_TEST_PROGRAMS'

/**
 * Bundles every program with its packages once for a test run, because loading TypeScript and many files is the slowest
 * part of starting a process. The bundles include the storage thread, which each test gateway starts.
 */
export async function offerPrograms(): Promise<() => Promise<void>> {
  const cache = join(root, '.cache')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'programs-'))
  const bundle = await rolldown({
    cwd: root,
    input: {
      'sqlite-worker': './src/storage/sqlite/worker.ts',
      ...Object.fromEntries(programs.map((name) => [toFlat(name), `./${name}.ts`])),
    },
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] },
    // As in the build: packages with native code, or with additional files.
    external: [/^node:/, 'better-sqlite3', 'pg', 'pino', 'chokidar'],
    checks: { ineffectiveDynamicImport: false },
    plugins: [ownAddresses],
  })
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
  await bundle.close()
  process.env[variable] = folder
  return () => rm(folder, { recursive: true, force: true })
}

/** Packages that read files beside their own code, whose address a bundle would change. */
const ownAddresses = {
  name: 'own-addresses',
  transform(code: string, id: string): string | undefined {
    if (!id.includes('@modelcontextprotocol/conformance/dist/')) return undefined
    return code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
  },
}

/** The path of a program: its bundle within a test run, otherwise its source, for example in a benchmark. */
export function programPath(name: ProgramName): string {
  const folder = process.env[variable]
  return folder ? join(folder, `${toFlat(name)}.js`) : join(root, `${name}.ts`)
}

/** A part of the vitest configuration: gateways within a worker use storage threads that stay ready. */
export const readyStorageThreads = {
  name: 'ready-storage-threads',
  // Before the types are removed, because what removes them may write the code in another way.
  enforce: 'pre' as const,
  transform(code: string, id: string): string | undefined {
    if (!id.endsWith('/src/storage/sqlite/engine.ts')) return undefined
    const source = 'new Worker('
    if (!code.includes(source)) throw new Error(`${id} does not start its thread by ${source} any more`)
    const threads = JSON.stringify(join(root, 'test/support/storage-threads.ts'))
    return `${code.replace(source, 'startStorageThread(')}\nimport { startStorageThread } from ${threads}\n`
  },
}

/** All bundles are in one folder, so that the bundles of gateways find the bundle of the storage thread. */
function toFlat(name: string): string {
  return name.replaceAll('/', '-')
}
