// `npm start`: install missing dependencies, build, and run a gateway with a demo server.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { ensureInstalled, node, root, run } from './install.mjs'
import { describeTaken, findPort, isFree } from './port.mjs'

const port = findPort(root, process.argv.slice(2))
if (!(await isFree(port))) {
  console.error(describeTaken(root, port))
  process.exit(1)
}
await ensureInstalled()
if (run([join(root, 'scripts', 'build.mjs')]) !== 0) process.exit(1)
const args = [join(root, 'bin', 'sallyport.js'), 'serve', '--demo', ...process.argv.slice(2)]
const gateway = spawn(node, args, { cwd: root, stdio: 'inherit' })
// The gateway handles these signals; this script ends when the gateway ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => gateway.kill(signal))
gateway.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
