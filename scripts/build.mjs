// Builds the package into dist/: the program (CLI, library and storage worker, in one folder, because they load each other)
// and the dashboard in dist/web. With `--types` also the type declarations of the library, in dist/types: only packing needs
// them, so `npm start` does not wait for them. A part is built only if its sources have changed, because a running gateway
// may use it.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildDeclarations } from './declarations.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const dist = join(root, 'dist')
const noForms = join(root, 'scripts', 'no-forms.mjs')
/** Files that affect every part. */
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
if (process.argv.includes('--types')) {
  parts.push({
    stampFile: '.types-built-from',
    folders: ['src'],
    files: [join(root, 'tsconfig.json'), join(root, 'scripts', 'declarations.mjs')],
    build: buildTypes,
  })
}

/** Hash of all sources of a part. */
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
      library: 'src/library/library.ts',
      'sqlite-worker': 'src/storage/sqlite/worker.ts',
    },
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] }, // one dependency also has a form that cannot be bundled
    // Native code cannot be bundled, and neither can packages that load their own files.
    external: [/^node:/, 'better-sqlite3', 'pg', 'pino', 'chokidar'],
    transform: { inject: { FormData: [noForms, 'FormData'] } },
    checks: { ineffectiveDynamicImport: false },
  })
  await bundle.write({
    dir: dist,
    format: 'esm',
    // V8 keeps the source text in memory, with two bytes per character if one character is not Latin-1.
    charset: 'ascii',
    comments: { legal: true, annotation: false, jsdoc: false },
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
  await bundle.close()
}

/** Removes old chunks, whose names change with every build, but keeps the dashboard and the types. */
async function clear() {
  const names = await readdir(dist).catch(() => [])
  const others = ['web', '.web-built-from', 'types', '.types-built-from']
  const own = names.filter((name) => !others.includes(name))
  await Promise.all(own.map((name) => rm(join(dist, name), { recursive: true, force: true })))
}

async function buildWeb() {
  const { build } = await import('vite')
  await build({ configFile: join(root, 'web', 'vite.config.ts'), logLevel: 'warn' })
}

async function buildTypes() {
  const project = join(root, 'src', 'library')
  await buildDeclarations({ root, project, entry: join('library', 'library.d.ts'), to: join(dist, 'types') })
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
