import { readFile } from 'node:fs/promises'
import { poll } from '../../support/gateway.ts'

/** A zombie is dead, only nobody has asked about it yet. */
export async function isGone(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z')
  return /\) [ZX]/.test(stat)
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Resolves when a process has ended. */
export async function ended(pid: number): Promise<void> {
  await poll(async () => (await isGone(pid)) || undefined)
}
