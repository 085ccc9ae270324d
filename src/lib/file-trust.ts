import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { GatewayError } from '../contract/errors.ts'

/** Why another user of this machine could change a path, and the command that fixes it. */
export type Weakness = { readonly path: string; readonly message: string; readonly fix: string }

const writableByAll = 0o002
const writableByGroup = 0o020
/** In a sticky folder such as /tmp only the owner of an entry may rename or remove it. */
const sticky = 0o1000
/** The user id that containers show for users that are not mapped. */
const unmappedUser = 65_534
const mostLinks = 40

/**
 * Checks owner and mode of a folder, of every folder above it and of every symbolic link on the path. Access control
 * lists are not read. For a path that does not exist yet, only the existing folders above it are checked.
 */
export function findFolderWeakness(path: string): Weakness | undefined {
  const steps = listSteps(resolve(path))
  const target = steps.findLast(({ link }) => !link)
  for (const step of steps) {
    const weakness = step === target && step.last ? judgeOwn(step, '700') : judgeParent(step)
    if (weakness) return weakness
  }
  return undefined
}

/** A user who can write or replace one of these files has the rights of the administrator, or can change the audit. */
const ownFiles =
  /^(admin-token|agent-token\..*|key|audit-key|anchors\.jsonl|gateway\.json|seal|sallyport\.db(-wal|-shm|-journal)?)$/

/** Checks a data folder and the files in it that only its owner should be able to write. */
export function findDataWeaknesses(folder: string): Weakness[] {
  const files = listNames(folder).filter((name) => ownFiles.test(name))
  const found = [findFolderWeakness(folder), ...files.map((name) => findFileWeakness(join(folder, name)))]
  return found.filter((weakness) => weakness !== undefined)
}

/** An unreadable folder gives an empty list; opening the data folder reports it with a better message. */
function listNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function findFileWeakness(path: string): Weakness | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return undefined
  if (stats.isSymbolicLink()) return toLinkWeakness(path)
  if (!stats.isFile()) return toSpecialWeakness(path)
  return judgeOwn({ path, stats }, '600')
}

/** Checks a configuration file and the folders above it. Symbolic links are followed. */
export function findConfigWeakness(path: string): Weakness | undefined {
  for (const step of listSteps(resolve(path))) {
    const weakness = step.last ? judgeOwn(step, 'go-w') : judgeParent(step)
    if (weakness) return weakness
  }
  return undefined
}

/**
 * Reads a small file that only this user can have written; undefined if it does not exist. Checks owner and mode of the
 * opened file, so that nobody can replace the file between the check and the reading.
 */
export function readOwnFile(path: string, mostBytes = 65_536): string | undefined {
  const file = tryOpen(path)
  if (file === undefined) return undefined
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw toUnsafe(toSpecialWeakness(path))
    const weakness = judgeOwn({ path, stats }, '600')
    if (weakness) throw toUnsafe(weakness)
    const bytes = Buffer.alloc(Math.min(stats.size, mostBytes))
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, 0))
  } finally {
    closeSync(file)
  }
}

/**
 * Reads a small file that only this user can have written. Symbolic links are followed, and every folder on the way is
 * checked. Owner and mode are those of the opened file. Throws if the file does not exist, is unsafe or is too large.
 */
export function readTrustedFile(path: string, mostBytes: number): Buffer {
  const weakness = findConfigWeakness(path)
  if (weakness) throw toUnsafe(weakness)
  const bytes = readOpened(path, 0, mostBytes)
  if (bytes === undefined) throw new GatewayError('config-unreadable', `${path} does not exist`, { path })
  return bytes
}

function readOpened(path: string, links: number, mostBytes: number): Buffer | undefined {
  const file = tryOpen(path, links)
  if (file === undefined) return undefined
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw new GatewayError('config-unreadable', `${path} is not a regular file`, { path })
    const opened = judgeStrictly({ path, stats })
    if (opened) throw toUnsafe(opened)
    return readAll(file, path, mostBytes)
  } finally {
    closeSync(file)
  }
}

/**
 * Reads a file whose text decides which programs run; undefined if it does not exist. The file itself must not be a link.
 * Reads once: what the caller judges and shows is what it gets here.
 */
export function readProgramFile(path: string, mostBytes: number): Buffer | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return undefined
  if (stats.isSymbolicLink()) throw toUnsafe(toLinkWeakness(path))
  const weakness = findConfigWeakness(path)
  if (weakness) throw toUnsafe(weakness)
  // The file may have been replaced since: links are not followed, and the opened file is checked again.
  return readOpened(path, constants.O_NOFOLLOW ?? 0, mostBytes)
}

/** Root too accepts only its own file here: its text chooses what runs, or what servers are sent. */
function judgeStrictly(step: Step): Weakness | undefined {
  const user = process.getuid?.()
  return user !== undefined && step.stats.uid !== user ? toForeign(step) : judgeOwn(step, 'go-w')
}

function readAll(file: number, path: string, mostBytes: number): Buffer {
  const bytes = Buffer.alloc(mostBytes + 1)
  let length = 0
  for (let read = -1; read !== 0 && length < bytes.length; length += read)
    read = readSync(file, bytes, length, bytes.length - length, length)
  if (length > mostBytes)
    throw new GatewayError('config-unreadable', `${path} is larger than ${mostBytes / 1024} KiB`, { path })
  return bytes.subarray(0, length)
}

export function toUnsafe({ path, message, fix }: Weakness): GatewayError {
  return new GatewayError('data-unsafe', `${message}. Correct it with: ${fix}`, { path, fix })
}

function tryOpen(path: string, links = constants.O_NOFOLLOW ?? 0): number | undefined {
  try {
    // Without O_NONBLOCK, opening a named pipe at this path would block.
    return openSync(path, constants.O_RDONLY | links | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') throw toUnsafe(toLinkWeakness(path))
    if (code === 'EACCES') throw new GatewayError('forbidden', `This user has no permission to read ${path}`)
    throw new GatewayError('data-unsafe', `${path} cannot be read (${code})`)
  }
}

function toLinkWeakness(path: string): Weakness {
  return { path, message: `${path} is a symbolic link, which is not allowed here`, fix: `rm ${quote(path)}` }
}

function toSpecialWeakness(path: string): Weakness {
  return { path, message: `${path} is not a regular file`, fix: `rm ${quote(path)}` }
}

type Step = { readonly path: string; readonly stats: Stats }
type PathStep = Step & { readonly link: boolean; readonly last: boolean }

/** Every folder and every symbolic link that the system resolves on the way to a path. */
function listSteps(path: string): PathStep[] {
  const steps: PathStep[] = []
  let pending = ['/', ...path.split('/').filter(Boolean)]
  let current = '/'
  let links = 0
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    if (name === '..') {
      current = dirname(current)
      continue
    }
    const next = join(current, name)
    const stats = lstatSync(next, { throwIfNoEntry: false })
    if (!stats) break
    const link = stats.isSymbolicLink()
    steps.push({ path: next, stats, link, last: !link && pending.length === 0 })
    if (!link) {
      current = next
      continue
    }
    if (++links > mostLinks) break
    const target = readlinkSync(next)
    if (target.startsWith('/')) current = '/'
    pending = [...target.split('/').filter((part) => part !== '' && part !== '.'), ...pending]
  }
  return steps
}

/** Root can read and write every file anyway, so for root only the mode is checked. */
function judgeOwn({ path, stats }: Step, mode: string): Weakness | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (user !== 0 && stats.uid !== user) return toForeign({ path, stats })
  if ((stats.mode & (writableByAll | writableByGroup)) === 0) return undefined
  return { path, message: `Other users can write to ${path} (${toMode(stats)})`, fix: `chmod ${mode} ${quote(path)}` }
}

/** A user who can write to a folder can replace the files in it. */
function judgeParent({ path, stats }: Step): Weakness | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (![0, user, unmappedUser].includes(stats.uid) && user !== 0) return toForeign({ path, stats })
  if (stats.isSymbolicLink() || (stats.mode & sticky) !== 0) return undefined
  // Many systems give each user a private group and let it write.
  const ownGroup = [0, process.getgid?.()].includes(stats.gid)
  const writable = writableByAll | (ownGroup ? 0 : writableByGroup)
  if ((stats.mode & writable) === 0) return undefined
  const message = `Other users can write to ${path} (${toMode(stats)}) and replace the files in it`
  return { path, message, fix: `chmod go-w ${quote(path)}` }
}

function toForeign({ path, stats }: Step): Weakness {
  const message = `${path} belongs to another user (user id ${stats.uid})`
  return { path, message, fix: `sudo chown "$(id -un)" ${quote(path)}` }
}

function toMode({ mode }: Stats): string {
  return `mode ${(mode & 0o7777).toString(8).padStart(4, '0')}`
}

export function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
