// `npm run bench:faults`: install what is missing, build what is shipped, and measure how it bears faults.
import { join } from 'node:path'
import { ensureInstalled, root, run } from '../../scripts/install.mjs'

await ensureInstalled()
if (run([join(root, 'scripts', 'build.mjs')]) !== 0) process.exit(1)
process.exit(run([join(root, 'bench', 'faults', 'faults.ts')]))
