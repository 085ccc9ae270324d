// Builds what is shipped into dist/: the CLI, the library and the storage worker, flat, so that they find each other, and
// the dashboard in dist/web. Each of the two is left alone if it was made of what is there now: a gateway that is running
// from it is not disturbed without need.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const dist = join(root, 'dist')
const noForms = join(root, 'scripts', 'no-forms.mjs')
/** What both are made by. */
const tools = [join(root, 'package-lock.json'), fileURLToPath(import.meta.url)]

const parts = [
  { stampFile: '.built-from', folders: ['src'], files: [noForms], build: buildProgram },
  {
    stampFile: '.web-built-from',
    folders: ['web', join('src', 'contract'), join('src', 'shared')],
    files: [],
    build: buildWeb,
  },
]

/** Of everything that a part is made of. */
async function stamp({ folders, files }) {
  const hash = createHash('sha256')
  const found = await Promise.all(folders.map((folder) => listFiles(join(root, folder))))
  for (const file of [...found.flat().sort(), ...files, ...tools]) hash.update(file).update(await readFile(file))
  return hash.digest('hex')
}

async function listFiles(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

async function buildProgram() {
  const { rolldown } = await import('rolldown')
  await clear()
  const bundle = await rolldown({
    cwd: root,
    input: {
      cli: 'src/cli/main.ts',
      gateway: 'src/gateway/gateway.ts',
      'sqlite-worker': 'src/storage/sqlite/worker.ts',
    },
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] }, // one part ships a form that cannot be bundled beside one that can
    // Native code cannot be bundled, and what loads files of its own does not want to be.
    external: [/^node:/, 'better-sqlite3', 'pg', 'pino', 'chokidar'],
    transform: { inject: { FormData: [noForms, 'FormData'] } },
    checks: { ineffectiveDynamicImport: false },
  })
  await bundle.write({
    dir: dist,
    format: 'esm',
    // An engine keeps the text of what runs, at two bytes a character as soon as one of them is not Latin.
    charset: 'ascii',
    comments: { legal: true, annotation: false, jsdoc: false },
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
  await bundle.close()
}

/** Chunks have other names each time; the dashboard beside them is not ours. */
async function clear() {
  const names = await readdir(dist).catch(() => [])
  const own = names.filter((name) => name !== 'web' && name !== '.web-built-from')
  await Promise.all(own.map((name) => rm(join(dist, name), { recursive: true, force: true })))
}

async function buildWeb() {
  const { build } = await import('vite')
  await build({ configFile: join(root, 'web', 'vite.config.ts'), logLevel: 'warn' })
}

for (const part of parts) {
  const stampFile = join(dist, part.stampFile)
  const wanted = await stamp(part)
  if ((await readFile(stampFile, 'utf8').catch(() => '')) === wanted) continue
  await rm(stampFile, { force: true })
  await part.build()
  await mkdir(dist, { recursive: true })
  await writeFile(stampFile, wanted)
}
