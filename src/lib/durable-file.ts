import { link, open, rename, rm } from 'node:fs/promises'

/** Writes a file that must not be there yet, readable by its owner only, and waits until the disk has it. */
export async function writeNewFile(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Replaces a file as a whole: whoever reads it sees the old text or the new, never half of one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`
  await rm(draft, { force: true })
  await writeNewFile(draft, text)
  await rename(draft, path)
}

/** Writes a file as a whole unless there is one: of several that try at once, one succeeds and is told so. */
export async function createFile(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${process.pid}.new`
  await rm(draft, { force: true })
  try {
    await writeNewFile(draft, text)
    await link(draft, path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}
