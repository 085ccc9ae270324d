import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const Package = z.object({ name: z.string(), version: z.string() })

/** Read from the package itself, from sources and from the bundle alike. */
export const version: string = findVersion(dirname(fileURLToPath(import.meta.url)))

function findVersion(folder: string): string {
  try {
    const found = Package.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')))
    if (found.name === 'sallyport') return found.version
  } catch {
    // not here: look further up
  }
  const parent = dirname(folder)
  return parent === folder ? '0.0.0' : findVersion(parent)
}
