import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const Package = z.object({ name: z.string(), version: z.string() })

/** Read from package.json, which works in the sources and in the bundle. */
export const version: string = findVersion(dirname(fileURLToPath(import.meta.url)))

function findVersion(folder: string): string {
  try {
    const found = Package.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')))
    if (found.name === 'sallyport') return found.version
  } catch {
    // no package.json here: try the parent folder
  }
  const parent = dirname(folder)
  return parent === folder ? '0.0.0' : findVersion(parent)
}
