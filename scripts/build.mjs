// Bundles what is shipped into dist/: the CLI, the library and the storage worker, flat, so that they find each other.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

const noForms = join(root, 'scripts', 'no-forms.mjs')
const stampFile = join(root, 'dist', '.built-from')

/** Of everything that the bundle is made of: a gateway that is running from it is not disturbed without need. */
async function stamp() {
  const entries = await readdir(join(root, 'src'), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const hash = createHash('sha256')
  for (const file of [...files.sort(), join(root, 'package-lock.json'), noForms, fileURLToPath(import.meta.url)]) {
    hash.update(file).update(await readFile(file))
  }
  return hash.digest('hex')
}

async function build() {
  const wanted = await stamp()
  if ((await readFile(stampFile, 'utf8').catch(() => '')) === wanted) return
  await rm(join(root, 'dist'), { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: root,
    input: {
      cli: 'src/cli/main.ts',
      gateway: 'src/gateway/gateway.ts',
      'sqlite-worker': 'src/storage/sqlite-worker.ts',
    },
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] }, // one part ships a form that cannot be bundled beside one that can
    // Native code cannot be bundled, and what loads files of its own does not want to be.
    external: [/^node:/, 'better-sqlite3', 'pg', 'pino', 'chokidar'],
    transform: { inject: { FormData: [noForms, 'FormData'] } },
    checks: { ineffectiveDynamicImport: false },
  })
  await bundle.write({
    dir: join(root, 'dist'),
    format: 'esm',
    // An engine keeps the text of what runs, at two bytes a character as soon as one of them is not Latin.
    charset: 'ascii',
    comments: { legal: true, annotation: false, jsdoc: false },
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
  await bundle.close()
  await mkdir(dirname(stampFile), { recursive: true })
  await writeFile(stampFile, wanted)
}

await build()
