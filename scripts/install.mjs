// Installs missing dependencies before anything else runs. Plain JavaScript for Node 20, because nothing is installed yet.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const modules = join(root, 'node_modules')
const stampFile = join(modules, '.sallyport-installed')
const lockFile = join(root, '.install-lock')
const staleAfterMs = 20 * 60_000

/** Node from the development dependencies. */
export const node = join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')

/** Hash of the lockfile, and the platform: if either changed, dependencies must be installed again. */
function stamp() {
  const hash = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
  return `${hash} ${process.platform} ${process.arch}`
}

function isInstalled() {
  return existsSync(node) && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp()
}

export async function ensureInstalled() {
  if (isInstalled()) return
  if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink()) {
    console.error('sallyport: node_modules is a link to another folder, so nothing is installed into it.')
    console.error('Remove the link, or run npm ci in the other folder.')
    process.exit(1)
  }
  const release = await lock()
  try {
    if (isInstalled()) return
    console.error('sallyport: installing dependencies (about a minute) …')
    const npm = process.env.npm_execpath
    const [command, ...first] = npm ? [process.execPath, npm] : [process.platform === 'win32' ? 'npm.cmd' : 'npm']
    const quiet = ['--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
    const result = spawnSync(command, [...first, 'ci', ...quiet], { cwd: root, stdio: ['ignore', 2, 2] })
    if (result.status !== 0) {
      console.error('sallyport: `npm ci` failed; see its output above.')
      process.exit(1)
    }
    mkdirSync(modules, { recursive: true })
    writeFileSync(stampFile, stamp())
  } finally {
    release()
  }
}

/** Two processes must not install into one folder at the same time: the second waits for the first. */
async function lock() {
  for (;;) {
    try {
      closeSync(openSync(lockFile, 'wx'))
      return () => rmSync(lockFile, { force: true })
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    const age = existsSync(lockFile) ? Date.now() - statSync(lockFile).mtimeMs : 0
    if (age > staleAfterMs) rmSync(lockFile, { force: true })
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** Runs a program of the project with the project's Node; returns its exit code. */
export function run(args, options = {}) {
  const path = `${join(modules, '.bin')}${process.platform === 'win32' ? ';' : ':'}${process.env.PATH ?? ''}`
  const result = spawnSync(node, args, {
    cwd: root,
    stdio: 'inherit',
    ...options,
    env: { ...process.env, PATH: path, ...options.env },
  })
  return result.status ?? 1
}
