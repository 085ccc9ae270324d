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

/** Why another user of this machine could change a path, and the command that corrects it. */
export type Weakness = { readonly path: string; readonly message: string; readonly fix: string }

const writableByAll = 0o002
const writableByGroup = 0o020
/** In a sticky folder such as /tmp only the owner of an entry may rename or remove it. */
const sticky = 0o1000
/** How a user that is not mapped into this container is shown. */
const unmappedUser = 65_534
const mostLinks = 40

/**
 * Checks owner and mode of a folder, of every folder above it and of every symbolic link on the way. Access control
 * lists are not read. A path that does not exist yet is judged by the folders above it.
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

/** Who can write or exchange one of these has the rights of the administrator, or can change the record. */
const ownFiles =
  /^(admin-token|agent-token\..*|key|audit-key|anchors\.jsonl|gateway\.json|seal|sallyport\.db(-wal|-shm|-journal)?)$/

/** The same for a data folder and the files in it that only its owner should write. */
export function findDataWeaknesses(folder: string): Weakness[] {
  const files = listNames(folder).filter((name) => ownFiles.test(name))
  const found = [findFolderWeakness(folder), ...files.map((name) => findFileWeakness(join(folder, name)))]
  return found.filter((weakness) => weakness !== undefined)
}

/** A folder that this user may not read is refused elsewhere, in words of its own. */
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

/** A configuration: a symbolic link is followed, and the folders above it count. */
export function findConfigWeakness(path: string): Weakness | undefined {
  for (const step of listSteps(resolve(path))) {
    const weakness = step.last ? judgeOwn(step, 'go-w') : judgeParent(step)
    if (weakness) return weakness
  }
  return undefined
}

/**
 * The text of a small file that only this user can have written; undefined if there is none. Owner and mode are those of
 * the opened file, so that it cannot be exchanged between the check and the reading.
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

export function toUnsafe({ path, message, fix }: Weakness): GatewayError {
  return new GatewayError('data-unsafe', `${message}. Correct it with: ${fix}`, { path, fix })
}

function tryOpen(path: string): number | undefined {
  try {
    // Without O_NONBLOCK a pipe in the place of the file would keep us waiting.
    return openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') throw toUnsafe(toLinkWeakness(path))
    if (code === 'EACCES') throw new GatewayError('forbidden', `${path} may not be read by this user`)
    throw new GatewayError('data-unsafe', `${path} cannot be read (${code})`)
  }
}

function toLinkWeakness(path: string): Weakness {
  return { path, message: `${path} is a symbolic link, and none is followed here`, fix: `rm ${quote(path)}` }
}

function toSpecialWeakness(path: string): Weakness {
  return { path, message: `${path} is not a regular file`, fix: `rm ${quote(path)}` }
}

type Step = { readonly path: string; readonly stats: Stats }
type PathStep = Step & { readonly link: boolean; readonly last: boolean }

/** Every folder and every link that the system passes on its way to a path. */
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

/** Root may read and write everything anyway: for root only the mode counts. */
function judgeOwn({ path, stats }: Step, mode: string): Weakness | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (user !== 0 && stats.uid !== user) return toForeign({ path, stats })
  if ((stats.mode & (writableByAll | writableByGroup)) === 0) return undefined
  return { path, message: `Others can write ${path} (${toMode(stats)})`, fix: `chmod ${mode} ${quote(path)}` }
}

/** Who can write a folder can exchange what is in it. */
function judgeParent({ path, stats }: Step): Weakness | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  if (![0, user, unmappedUser].includes(stats.uid) && user !== 0) return toForeign({ path, stats })
  if (stats.isSymbolicLink() || (stats.mode & sticky) !== 0) return undefined
  // Many systems give each user a group of their own, and write permission to it.
  const ownGroup = [0, process.getgid?.()].includes(stats.gid)
  const writable = writableByAll | (ownGroup ? 0 : writableByGroup)
  if ((stats.mode & writable) === 0) return undefined
  const message = `Others can write ${path} (${toMode(stats)}) and so exchange what is in it`
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
