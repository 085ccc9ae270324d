import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What tests start as processes of their own, thousands of times. */
const programs = [
  'test/audit/crashing-gateway',
  'test/calls/once-process',
  'test/cli/command-host',
  'test/conformance/client',
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
  'test/secrets/rotating-process',
  'test/storage/claiming-process',
] as const

export type ProgramName = (typeof programs)[number]

/** Names the folder with the bundles to every worker of a test run. */
const variable = 'SALLYPORT_TEST_PROGRAMS'

/**
 * Bundles every program with its packages once for a test run, because reading TypeScript and many files takes a process
 * longer than the rest of its start. The storage thread is among them: each gateway of a test starts one.
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
    // The same as in the build: packages with native code, or with files of their own.
    external: [/^node:/, 'better-sqlite3', 'pg', 'pino', 'chokidar'],
    checks: { ineffectiveDynamicImport: false },
  })
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
  await bundle.close()
  process.env[variable] = folder
  return () => rm(folder, { recursive: true, force: true })
}

/** The program to start: its bundle within a test run, and its source elsewhere, such as in a benchmark. */
export function programPath(name: ProgramName): string {
  const folder = process.env[variable]
  return folder ? join(folder, `${toFlat(name)}.js`) : join(root, `${name}.ts`)
}

/**
 * A part of the vitest configuration: gateways within a worker start the bundle of the storage thread. The folder is
 * read when the code runs, because vitest keeps transformed code for later runs, which have another folder.
 */
export const bundledStorageThread = {
  name: 'bundled-storage-thread',
  // Before the types are removed, because what removes them writes its own quotes.
  enforce: 'pre' as const,
  transform(code: string, id: string): string | undefined {
    if (!id.endsWith('/src/storage/sqlite/engine.ts')) return undefined
    const source = "'./worker.ts'"
    if (!code.includes(source)) throw new Error(`${id} does not name ${source} any more`)
    const folder = `process.env.${variable}`
    return code.replace(source, `(${folder} ? ${folder} + '/sqlite-worker.js' : ${source})`)
  },
}

/** Side by side, so that the bundles of gateways find that of the storage thread. */
function toFlat(name: string): string {
  return name.replaceAll('/', '-')
}
