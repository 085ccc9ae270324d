// `npm test`: install what is missing, build what is shipped, and run every test.
import { join } from 'node:path'
import { browserNote } from './browser.mjs'
import { ensureInstalled, root, run } from './install.mjs'

await ensureInstalled()
// A test of this script runs it when everything is built.
if (!process.env.SALLYPORT_TEST_BUILT && run([join(root, 'scripts', 'build.mjs')]) !== 0) process.exit(1)
const words = process.argv.slice(2)
const code = run([join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...words])
// After everything that vitest has written: tests that did not run must not pass for tests that did.
const note = browserNote(words)
if (note) console.error(`\n${note}`)
process.exit(code)
