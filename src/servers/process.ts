import { readdir, readFile } from 'node:fs/promises'
import { type Clock, sleep } from '../lib/clock.ts'
import { hasEnded, readProcessStat } from '../lib/processes.ts'
import { instanceMarker } from './environment.ts'

/** Identifies a process. The pid alone is not enough: the system may have given it to another process since. */
export type ProcessIdentity = { readonly pid: number; readonly bootId: string; readonly startTime: string }

export async function readBootId(): Promise<string> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return text.trim()
}

async function hasMarker(pid: number, instance: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
  return environment.split('\0').includes(`${instanceMarker}=${instance}`)
}

/** Living members of a process group, without zombies. */
async function groupMembers(group: number): Promise<number[]> {
  const members: number[] = []
  for (const pid of await allProcesses()) {
    const stat = await readProcessStat(pid)
    if (stat && stat.group === group && !hasEnded(stat)) members.push(pid)
  }
  return members
}

/** Returns false if the group does not exist. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal)
    return true
  } catch {
    return false
  }
}

/** Sends SIGKILL to a process group and waits until no member is left. */
export async function killGroup(group: number, clock: Clock): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    if (!signalGroup(group, 'SIGKILL')) return
    if (process.platform === 'linux' && (await groupMembers(group)).length === 0) return
    await sleep(clock, 20, never)
  }
}

const never = new AbortController().signal

export type Orphan = {
  readonly pid: number
  readonly instance: string
  readonly bootId: string
  readonly startTime: string
}

/**
 * Ends the process group of a dead gateway. To spare other processes it requires the same boot, the same start time and
 * the dead instance's marker in the environment. If the leader has ended, each member of the group is checked.
 */
export async function endOrphan(orphan: Orphan, clock: Clock): Promise<boolean> {
  if (process.platform !== 'linux' || orphan.bootId !== (await readBootId())) return false
  const leader = await readProcessStat(orphan.pid)
  if (leader && leader.startTime === orphan.startTime && (await hasMarker(orphan.pid, orphan.instance))) {
    await killGroup(orphan.pid, clock)
    return true
  }
  if (leader && leader.startTime !== orphan.startTime) return false
  let ended = false
  for (const pid of await groupMembers(orphan.pid)) {
    if (!(await hasMarker(pid, orphan.instance))) continue
    process.kill(pid, 'SIGKILL')
    ended = true
  }
  return ended
}

/**
 * Ends group leaders with the marker of a dead instance. This finds children whose gateway was killed before it could
 * record them.
 */
export async function endMarked(instances: readonly string[], clock: Clock): Promise<number> {
  if (instances.length === 0) return 0
  let ended = 0
  for (const pid of await allProcesses()) {
    const stat = await readProcessStat(pid)
    if (stat?.group !== pid || hasEnded(stat) || !(await carriesMarker(pid, instances))) continue
    await killGroup(pid, clock)
    ended++
  }
  return ended
}

async function carriesMarker(pid: number, instances: readonly string[]): Promise<boolean> {
  const found = await Promise.all(instances.map((instance) => hasMarker(pid, instance)))
  return found.includes(true)
}

async function allProcesses(): Promise<number[]> {
  const entries = await readdir('/proc').catch(() => [])
  return entries.filter((entry) => /^\d+$/.test(entry)).map(Number)
}
