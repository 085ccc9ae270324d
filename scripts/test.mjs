// `npm test`: install missing dependencies, build the package, and run every test.
import { join } from 'node:path'
import { browserNote, findBrowser, wantsBrowser } from './browser.mjs'
import { ensureInstalled, root, run } from './install.mjs'

await ensureInstalled()
// The test of this script sets this variable, because everything is already built.
if (!process.env.SALLYPORT_TEST_BUILT && run([join(root, 'scripts', 'build.mjs')]) !== 0) process.exit(1)
const words = process.argv.slice(2)
if (!process.env.SALLYPORT_CHROMIUM && wantsBrowser(words) && !findBrowser())
  run([join(root, 'scripts', 'install-browser.ts')])
const code = run([join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...words])
// Printed last, so that tests that did not run are not overlooked.
const note = browserNote(words)
if (note) console.error(`\n${note}`)
process.exit(code)
