import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readlink, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'

/** The bytes of a file, or why they are not read. */
export type InsideFile =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly problem: string }

type Wanted = { readonly folder: string; readonly file: string; readonly mostBytes: number }

/**
 * Reads a file in a folder whose content other people write. Links could lead to any file that this user can read, so the
 * folder, every folder below it and the file itself must not be links. The opened file is checked, not only its path:
 * the path may lead to another file a moment later.
 */
export async function readInside({ folder, file, mostBytes }: Wanted): Promise<InsideFile> {
  try {
    const link = await findLink(join(dirname(folder), basename(folder)), file)
    if (link !== undefined) return refused(`${link} is a symbolic link, which is not allowed here`)
    // Only the folders above may be reached through links: the folder itself may become one at any time.
    const path = join(await realpath(dirname(folder)), basename(folder), file)
    // Without O_NONBLOCK, opening a named pipe would block.
    const handle = await open(join(folder, file), constants.O_RDONLY | noFollow | constants.O_NONBLOCK)
    try {
      return await readOpened(handle, path, mostBytes)
    } finally {
      await handle.close()
    }
  } catch (error) {
    return refused(toProblem(error, join(folder, file)))
  }
}

const noFollow = constants.O_NOFOLLOW ?? 0

async function readOpened(handle: FileHandle, path: string, mostBytes: number): Promise<InsideFile> {
  const stats = await handle.stat()
  if (!stats.isFile()) return refused(`${path} is not a regular file`)
  if (stats.nlink > 1) return refused(`${path} has several names (hard links), which is not allowed here`)
  if (!(await leadsTo(path, handle))) return refused(`${path} was replaced while it was read`)
  const bytes = Buffer.alloc(mostBytes + 1)
  let length = 0
  while (length < bytes.length) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  if (length > mostBytes) return refused(`${path} is larger than ${mostBytes / 1024} KiB`)
  return { ok: true, bytes: bytes.subarray(0, length) }
}

/** Whether the path, without following links, is the path of the opened file. */
async function leadsTo(path: string, handle: FileHandle): Promise<boolean> {
  // Linux knows the path of an opened file. Other systems compare the files after the opening.
  const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined)
  if (opened !== undefined) return opened === path
  const [mine, now] = [await handle.stat(), await stat(path)]
  return (await realpath(path)) === path && now.dev === mine.dev && now.ino === mine.ino
}

async function findLink(folder: string, file: string): Promise<string | undefined> {
  const names = file.split(/[\\/]/).filter((name) => name !== '' && name !== '.')
  const paths = names.map((_, index) => [folder, ...names.slice(0, index + 1)].join(sep))
  for (const path of [folder, ...paths]) {
    if ((await lstat(path)).isSymbolicLink()) return path
  }
  return undefined
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  ELOOP: 'is a symbolic link, which is not allowed here',
  EACCES: 'cannot be read: permission denied',
  EISDIR: 'is not a regular file',
  ENXIO: 'is not a regular file',
}

function toProblem(error: unknown, path: string): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return `${path} ${reasons[code] ?? `cannot be read (${code || 'unknown error'})`}`
}

function refused(problem: string): InsideFile {
  return { ok: false, problem }
}
