import { chmodSync, existsSync, mkdtempSync, readFileSync, statfsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { offerPostgres } from './postgres.ts'
import { offerPrograms } from './programs.ts'

/**
 * Every process that a test starts, and every child of a gateway, inherits `TMPDIR`. This identifies the processes that
 * are left at the end of the run, and the run fails if there are any.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(findTemporaryFolder(), 'sallyport-run-'))
  chmodSync(folder, 0o711) // if the tests run as root, PostgreSQL runs as another user
  process.env.TMPDIR = folder
  process.env.NODE_COMPILE_CACHE = join(folder, 'compiled') // hundreds of processes load the same few programs
  const [endPostgres, endPrograms] = await Promise.all([offerPostgres(), offerPrograms()])
  return async () => {
    await endPostgres()
    const left = await waitForNone(folder)
    await endPrograms()
    await rm(folder, { recursive: true, force: true })
    if (left.length > 0) throw new Error(`Processes of this test run are still alive:\n${left.join('\n')}`)
  }
}

const memoryFolder = '/dev/shm'
const roomNeeded = 6 * 1024 ** 3

/**
 * Uses a folder in memory if Linux has one with enough space, because every test gateway waits several times until its
 * files are on the disk. TMPDIR sets another folder.
 */
function findTemporaryFolder(): string {
  if (process.env.TMPDIR || !existsSync(memoryFolder)) return tmpdir()
  const { bavail, bsize } = statfsSync(memoryFolder)
  const hasRoom = Math.min(bavail * bsize, process.availableMemory()) > roomNeeded
  const mount = readFileSync('/proc/mounts', 'utf8').match(/^\S+ \/dev\/shm \S+ (\S+)/m)
  // Tests start programs from this folder, which containers often forbid (noexec).
  return hasRoom && mount && !mount[1]?.split(',').includes('noexec') ? memoryFolder : tmpdir()
}

async function waitForNone(folder: string): Promise<string[]> {
  let left: string[] = []
  for (let attempt = 0; attempt < 50; attempt++) {
    left = await alive(folder)
    if (left.length === 0) return []
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return left
}

async function alive(folder: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue
    const read = (file: string) => readFile(`/proc/${entry}/${file}`, 'utf8').catch(() => '')
    const [command, environment, stat] = await Promise.all([read('cmdline'), read('environ'), read('stat')])
    const isZombie = stat.includes(') Z ')
    const isVitest = command.includes('vitest')
    if (command !== '' && !isZombie && !isVitest && environment.includes(`TMPDIR=${folder}`)) {
      found.push(`${entry} ${command.replaceAll('\0', ' ')}`)
    }
  }
  return found
}
