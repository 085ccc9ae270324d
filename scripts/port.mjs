// Checks the port before the installation. Plain JavaScript for Node 20, because nothing is installed yet.
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

const usual = 4777

/**
 * The port that `serve` would use: from the option, else from the configuration, else the default. Undefined if that needs
 * a parser; the gateway then reports a port that is in use.
 */
export function findPort(root, args) {
  const option = findOption(args, 'port')
  if (option !== undefined) return Number(option)
  if (findOption(args, 'config') !== undefined || process.env.SALLYPORT_CONFIG) return undefined
  const here = ['yaml', 'yml', 'json', 'toml'].map((ending) => join(root, `sallyport.${ending}`))
  const elsewhere = findOption(args, 'data') !== undefined || Boolean(process.env.SALLYPORT_DATA)
  const file = [...here, ...(elsewhere ? [] : [join(root, '.sallyport', 'sallyport.yaml')])].find(existsSync)
  if (file === undefined) return elsewhere ? undefined : usual
  return readPort(file, readFileSync(file, 'utf8'))
}

function findOption(args, name) {
  const at = args.findIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`))
  return at === -1 ? undefined : (args[at].split('=')[1] ?? args[at + 1] ?? '')
}

function readPort(file, text) {
  if (file.endsWith('.json')) return readJsonPort(text)
  const lines = text.replace(/\r/g, '').replace(/^[ \t]*#.*$/gm, '')
  if (!/\blisten\b/.test(lines)) return usual
  const inline = /^listen[ \t]*[:=][ \t]*\{([^{}]*)\}/m.exec(lines)
  const block = /^(?:listen:|\[listen\])[ \t]*(?:#.*)?\n((?:(?![^\s].*:|\[).*\n)*)/m.exec(`${lines}\n`)
  const dotted = /^listen\.port[ \t]*=[ \t]*(\d+)/m.exec(lines)
  if (dotted) return Number(dotted[1])
  const fields = inline?.[1] ?? block?.[1]
  if (fields === undefined) return undefined
  const port = /(?:^|[,{\n])[ \t]*port[ \t]*[:=][ \t]*(\d+)/.exec(fields)
  return port ? Number(port[1]) : usual
}

function readJsonPort(text) {
  try {
    return JSON.parse(text)?.listen?.port ?? usual
  } catch {
    return undefined
  }
}

/** The message for a port that is in use, usually by a gateway that already runs on this folder. */
export function describeTaken(root, port) {
  const running = findRunning(root)
  if (running !== undefined) return `sallyport: a gateway already runs on this folder, at ${running}`
  return [
    `sallyport: port ${port} on 127.0.0.1 is used by another program.`,
    `Stop that program, or choose another port: npm start -- --port ${port + 1}`,
  ].join('\n')
}

function findRunning(root) {
  try {
    const { url, pid } = JSON.parse(readFileSync(join(root, '.sallyport', 'gateway.json'), 'utf8'))
    process.kill(pid, 0)
    return String(url)
  } catch {
    return undefined
  }
}

/** Resolves with false if another program uses the port. Other errors are reported by the gateway. */
export function isFree(port) {
  return new Promise((resolve) => {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) return resolve(true)
    const server = createServer()
    server.once('error', (error) => resolve(error.code !== 'EADDRINUSE'))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
