#!/usr/bin/env node
// Plain JavaScript for Node 20: with an old Node, this file must still run to start the right Node or to print the error.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const bundle = join(root, 'dist', 'cli.js')
const ownNode = join(root, 'node_modules', 'node', 'bin', 'node')

await prepareCheckout()
if (!isNewEnough(process.versions.node)) runWithOwnNode()
else if (existsSync(bundle)) await run()
else fail('Sallyport is not built: run npm run build.')

/** Installs and builds a fresh clone. All output goes to standard error. */
async function prepareCheckout() {
  const install = join(root, 'scripts', 'install.mjs')
  const ready = existsSync(bundle) && (isNewEnough(process.versions.node) || existsSync(ownNode))
  if (ready || !existsSync(install) || process.env.SALLYPORT_OWN_NODE) return
  const { ensureInstalled, run: runScript } = await import('../scripts/install.mjs')
  await ensureInstalled()
  if (existsSync(bundle)) return
  process.stderr.write('sallyport: building …\n')
  runScript([join(root, 'scripts', 'build.mjs')], { stdio: ['ignore', 2, 2] })
}

async function run() {
  // This process was started by `runWithOwnNode`: if the parent is killed, such as by SIGKILL, this process ends too.
  if (process.channel && process.env.SALLYPORT_OWN_NODE) {
    process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
    process.channel.unref()
  }
  const { main } = await import('../dist/cli.js')
  process.exitCode = await main(process.argv.slice(2))
}

/** A checkout contains Node as a development dependency. */
function runWithOwnNode() {
  if (!existsSync(ownNode) || process.env.SALLYPORT_OWN_NODE) {
    const found = process.versions.node
    return fail(`Sallyport needs Node 22.19 or newer, but this is ${found}: install Node from https://nodejs.org.`)
  }
  const child = spawn(ownNode, process.argv.slice(1), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, SALLYPORT_OWN_NODE: '1' },
  })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => fail(`${ownNode} could not be started: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
}

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number)
  return major > 22 || (major === 22 && minor >= 19)
}

function fail(sentence) {
  process.stderr.write(`${sentence}\n`)
  process.exitCode = 1
}
