// `npm run check`: all checks; `--static` leaves out the tests. Stops at the first failure.
import { join } from 'node:path'
import { ensureInstalled, root, run } from './install.mjs'

await ensureInstalled()
const bin = (name) => join(root, 'node_modules', ...name)
const steps = [
  ['format and lint', [bin(['@biomejs', 'biome', 'bin', 'biome']), 'ci', '.', '--error-on-warnings']],
  ['types', [bin(['typescript', 'bin', 'tsc']), '--noEmit']],
  ['types of the dashboard', [bin(['typescript', 'bin', 'tsc']), '--noEmit', '-p', 'web']],
  ['types of the library', [join(root, 'scripts', 'build.mjs'), '--types']],
  ['generated files', [join(root, 'scripts', 'generate.mjs'), '--check']],
  ['tests', [join(root, 'scripts', 'test.mjs')]],
]
const wanted = process.argv.includes('--static') ? steps.filter(([name]) => name !== 'tests') : steps
for (const [name, args] of wanted) {
  console.error(`check: ${name}`)
  const code = run(args)
  if (code !== 0) {
    console.error(`check: ${name} failed`)
    process.exit(code)
  }
}
