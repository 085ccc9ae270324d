import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** A package that only some scripts and tests of this repository need. */
export type OnDemandPackage = { readonly name: string; readonly version: string }

const installMs = 300_000
const run = promisify(execFile)

/** Path of a file of the installed package. */
export function onDemandPath(wanted: OnDemandPackage, ...file: readonly string[]): string {
  return join(folderOf(wanted), 'node_modules', ...file)
}

function folderOf({ name, version }: OnDemandPackage): string {
  const cache = process.env.SALLYPORT_CACHE ?? join(homedir(), '.cache', 'sallyport')
  return join(cache, 'packages', `${name.replaceAll('/', '+')}@${version}`)
}

/** Installs into a separate folder, so that the package is not a dependency of Sallyport. */
export async function installOnDemand(wanted: OnDemandPackage): Promise<void> {
  const folder = folderOf(wanted)
  if (existsSync(folder)) return
  // Install into a temporary folder and rename it, so that the final folder is always complete.
  const aside = `${folder}.${process.pid}`
  await mkdir(aside, { recursive: true })
  try {
    await install(wanted, aside)
    await mkdir(dirname(folder), { recursive: true })
    await rename(aside, folder).catch((error: NodeJS.ErrnoException) => {
      if (!existsSync(folder)) throw error
    })
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}

async function install({ name, version }: OnDemandPackage, folder: string): Promise<void> {
  const manifest = { private: true, dependencies: { [name]: version } }
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  const npm = process.env.npm_execpath
  const [command, ...first] = npm === undefined ? ['npm'] : [process.execPath, npm]
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts']
  try {
    await run(command, [...first, 'install', ...quiet], { cwd: folder, timeout: installMs })
  } catch (error) {
    const why = error instanceof Error && 'stderr' in error ? error.stderr : error
    throw new Error(`npm could not install ${name}@${version}:\n${why}`, { cause: error })
  }
}
