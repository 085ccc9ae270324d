import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

let drafts = 0

/** A temporary name in the same folder. It is unique, so that two writers of one file do not share it. */
function toDraft(path: string): string {
  return `${path}.${process.pid}.${++drafts}.new`
}

/** Replaces a file atomically: a reader sees the old text or the new text, never a part of one. */
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

/** Creates a file atomically. Returns false if the file exists, so of several concurrent callers exactly one gets true. */
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

/** Gives a draft that is on disk its final name. Unlike a rename it fails if a file of that name exists. */
export async function linkFile(draft: string, path: string): Promise<void> {
  await link(draft, path)
  await syncFolder(dirname(path))
}

/** Syncs a draft to disk and renames it, replacing a file of that name. Synchronous, for code that cannot await. */
export function placeFile(draft: string, path: string): void {
  syncNow(openSync(draft, 'r+'))
  renameSync(draft, path)
  try {
    syncNow(openSync(dirname(path), 'r'))
  } catch {
    // Windows cannot open folders.
  }
}

function syncNow(descriptor: number): void {
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Appends a line and syncs the file. If a crash left an incomplete last line, the new line begins after a line break. */
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

/** Makes new names in a folder durable. Does nothing on Windows, which cannot open folders. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => undefined)
  await handle?.close()
}

/**
 * Only the owner can read the file. An existing draft of this name was left by a crashed process that had the same
 * process id.
 */
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
