import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

let drafts = 0

/** A name beside the file that nobody else uses: whoever writes at the same time has another one. */
function toDraft(path: string): string {
  return `${path}.${process.pid}.${++drafts}.new`
}

/** Replaces a file as a whole: whoever reads it sees the old text or the new, never half of one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = toDraft(path)
  try {
    await writeDraft(draft, text)
    await rename(draft, path)
    await syncFolder(dirname(path))
  } finally {
    await rm(draft, { force: true })
  }
}

/** Writes a file as a whole unless there is one: of several that try at once, one succeeds and is told so. */
export async function createFile(path: string, text: string): Promise<boolean> {
  const draft = toDraft(path)
  try {
    await writeDraft(draft, text)
    await linkFile(draft, path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Gives a file that is on disk its name, and fails where a rename would overwrite another one. */
export async function linkFile(draft: string, path: string): Promise<void> {
  await link(draft, path)
  await syncFolder(dirname(path))
}

/** Gives a file its name after its content is on disk, for code that cannot wait. Replaces a file of that name. */
export function placeFile(draft: string, path: string): void {
  syncNow(openSync(draft, 'r+'))
  renameSync(draft, path)
  try {
    syncNow(openSync(dirname(path), 'r'))
  } catch {
    // Windows opens no folders.
  }
}

function syncNow(descriptor: number): void {
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
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
    if (size === 0) await syncFolder(dirname(path))
  } finally {
    await file.close()
  }
}

const newline = 0x0a

/** Makes new names in a folder durable, where the system can. Windows opens no folders. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => undefined)
  await handle?.close()
}

/** Readable by its owner only. What a crash left there is of a process with the same number, which is gone. */
async function writeDraft(draft: string, text: string): Promise<void> {
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}
