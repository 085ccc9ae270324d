import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../lib/folders.ts'

/** What they are measured in: exact versions, with the script that `npx` would run. */
const peers = {
  'mcp-hub': { version: '4.2.1', script: 'dist/cli.js' },
  'mcp-proxy': { version: '6.7.19', script: 'dist/bin/mcp-proxy.mjs' },
  supergateway: { version: '4.0.0', script: 'dist/index.js' },
} as const

export type PeerName = keyof typeof peers
export const peerNames: readonly string[] = Object.keys(peers)
export const peerVersions: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(peers).map(([name, { version }]) => [name, version]),
)

const folder = join(cacheFolder, 'peers')
const run = promisify(execFile)

export function peerScript(name: PeerName): string {
  return join(folder, 'node_modules', name, peers[name].script)
}

/** Into a folder of their own and only when they are wanted: nobody who installs Sallyport installs them. */
export async function installPeers(): Promise<void> {
  const manifest = `${JSON.stringify({ private: true, dependencies: peerVersions }, null, 2)}\n`
  const file = join(folder, 'package.json')
  const stamp = join(folder, 'installed.json')
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === manifest) return
  await mkdir(folder, { recursive: true })
  await writeFile(file, manifest)
  const npm = process.env.npm_execpath
  const [command, ...first] = npm === undefined ? ['npm'] : [process.execPath, npm]
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts']
  await run(command, [...first, 'install', ...quiet], { cwd: folder })
  await writeFile(stamp, manifest)
}
