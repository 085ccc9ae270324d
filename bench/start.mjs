// `npm run bench`: install missing dependencies, build, and run the benchmark.
import { join } from 'node:path'
import { ensureInstalled, root, run } from '../scripts/install.mjs'

await ensureInstalled()
if (run([join(root, 'scripts', 'build.mjs')]) !== 0) process.exit(1)
process.exit(run([join(root, 'bench', 'bench.ts'), ...process.argv.slice(2)]))
