import { randomBytes } from 'node:crypto'
import { open, realpath, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { GatewayError } from '../contract/errors.ts'
import { syncFolder } from '../lib/durable-file.ts'
import { readText, toReason } from './read.ts'

export type SavePlan = { readonly file: string; readonly text: string; readonly expected: string }

/**
 * Replaces a file as a whole: written beside it, forced to disk, renamed over it. Whoever reads sees the old text or the new.
 * Looks a last time, after the slow part, whether somebody else wrote meanwhile; then nothing is touched.
 */
export async function saveText({ file, text, expected }: SavePlan): Promise<'saved' | 'changed-meanwhile'> {
  const target = await realpath(file).catch(() => file) // a link stays a link
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    await writeDurably(temporary, target, text)
    if ((await readText(file)) !== expected) {
      await unlink(temporary)
      return 'changed-meanwhile'
    }
    await rename(temporary, target)
    // The new text is in place: an error here must not look as if it were not.
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

/** The new file keeps owner and rights of the old: it may hold secrets. */
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

/** Who may write the folder may replace the file, but only root gives files away. */
function unlessRoot(error: unknown): void {
  if (process.getuid?.() === 0) throw error
}
