// Tells before the installation that the port is taken. Plain JavaScript for Node 20: nothing is installed yet.
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

/** The port that `serve` would use: the option, else the one in the configuration, else the usual one. */
export function findPort(root, args) {
  const at = args.findIndex((word) => word === '--port' || word.startsWith('--port='))
  const option = at === -1 ? undefined : (args[at].split('=')[1] ?? args[at + 1])
  if (option !== undefined) return Number(option)
  const files = [join(root, 'sallyport.yaml'), join(root, '.sallyport', 'sallyport.yaml')]
  const file =
    args.includes('--config') || process.env.SALLYPORT_CONFIG ? undefined : files.find((name) => existsSync(name))
  const named =
    file && /^listen:\n(?:[ \t]+.*\n|[ \t]*#.*\n|\n)*?[ \t]+port:[ \t]*(\d+)/m.exec(readFileSync(file, 'utf8'))
  return named ? Number(named[1]) : 4777
}

/** Resolves with false when another program listens there. Any other trouble is left to the gateway, which names it. */
export function isFree(port) {
  return new Promise((resolve) => {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) return resolve(true)
    const server = createServer()
    server.once('error', (error) => resolve(error.code !== 'EADDRINUSE'))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
