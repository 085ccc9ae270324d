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

let drafts = 0

/** Writes a file as a whole unless there is one: of several that try at once, one succeeds and is told so. */
export async function createFile(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${process.pid}.${++drafts}.new`
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

/** Adds a line and waits until the disk has it. Half a line that a crash left behind stays alone. */
export async function appendLine(path: string, line: string): Promise<void> {
  const file = await open(path, 'a+', 0o600)
  try {
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1))
    const torn = bytesRead === 1 && buffer[0] !== newline
    await file.appendFile(torn ? `\n${line}` : line)
    await file.sync()
  } finally {
    await file.close()
  }
}

const newline = 0x0a
