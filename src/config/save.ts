import { randomBytes } from 'node:crypto'
import { open, realpath, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { GatewayError } from '../contract/errors.ts'
import { syncFolder } from '../lib/durable-file.ts'
import { readText, toReason } from './read.ts'

export type SavePlan = { readonly file: string; readonly text: string; readonly expected: string }

/**
 * Replaces a file atomically: writes a temporary file, syncs it to disk and renames it. Readers see the old or the new text.
 * Compares the file with `expected` directly before the rename, and changes nothing if it differs.
 */
export async function saveText({ file, text, expected }: SavePlan): Promise<'saved' | 'conflict'> {
  const target = await realpath(file).catch(() => file) // a symbolic link is kept
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    await writeDurably(temporary, target, text)
    if ((await readText(file)) !== expected) {
      await unlink(temporary)
      return 'conflict'
    }
    await rename(temporary, target)
    // The new text is already in place, so an error here is ignored.
    await syncFolder(dirname(target)).catch(() => undefined)
    return 'saved'
  } catch (error) {
    await unlink(temporary).catch(() => undefined)
    if (error instanceof GatewayError) throw error
    throw new GatewayError(
      'config-unreadable',
      `${file} cannot be saved: ${toReason(error)}`,
      { file },
      { cause: error },
    )
  }
}

/** The new file keeps the owner and mode of the old file, because it may contain secrets. */
async function writeDurably(temporary: string, target: string, text: string): Promise<void> {
  const { mode, uid, gid } = await stat(target)
  const handle = await open(temporary, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    const made = await handle.stat()
    if (made.uid !== uid || made.gid !== gid) await handle.chown(uid, gid).catch(unlessRoot)
    await handle.chmod(mode & 0o777)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Only root may change the owner of a file, so this error is ignored for other users. */
function unlessRoot(error: unknown): void {
  if (process.getuid?.() === 0) throw error
}
