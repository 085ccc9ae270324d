// `npm run bench:faults`: install missing dependencies, build, and measure faults.
import { join } from 'node:path'
import { ensureInstalled, root, run } from '../../scripts/install.mjs'

await ensureInstalled()
if (run([join(root, 'scripts', 'build.mjs')]) !== 0) process.exit(1)
process.exit(run([join(root, 'bench', 'faults', 'faults.ts')]))
