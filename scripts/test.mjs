// `npm test`: install what is missing, build what is shipped, and run every test.
import { join } from 'node:path'
import { ensureInstalled, root, run } from './install.mjs'

await ensureInstalled()
if (run([join(root, 'scripts', 'build.mjs')]) !== 0) process.exit(1)
process.exit(run([join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...process.argv.slice(2)]))
