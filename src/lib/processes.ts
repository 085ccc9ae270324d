import { readFile, readlink } from 'node:fs/promises'

export type ProcessStat = { readonly state: string; readonly group: number; readonly startTime: string }

/** Undefined where there is no such process, or no /proc. */
export async function readProcessStat(pid: number): Promise<ProcessStat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name in parentheses may contain blanks and parentheses itself: fields are counted behind the last one.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, , group] = fields ?? []
  const startTime = fields?.[19]
  if (state === undefined || group === undefined || startTime === undefined) return undefined
  return { state, group: Number(group), startTime }
}

/** A zombie has ended: only its parent has not asked for its exit code yet. */
export function hasEnded({ state }: ProcessStat): boolean {
  return state === 'Z' || state === 'X'
}

/**
 * A process id means something only within its pid namespace, and only until the system uses the number again. Both facts
 * as one text, such as `pid:[4026531836] 81234`.
 */
export type ProcessMark = { readonly namespace: string; readonly startTime: string }

/** Undefined where there is no /proc. */
export async function readOwnMark(): Promise<ProcessMark | undefined> {
  const namespace = await readlink('/proc/self/ns/pid').catch(() => undefined)
  const stat = await readProcessStat(process.pid)
  return namespace === undefined || stat === undefined ? undefined : { namespace, startTime: stat.startTime }
}

export function toMarkText({ namespace, startTime }: ProcessMark): string {
  return `${namespace} ${startTime}`
}

export function parseMark(text: string | null): ProcessMark | undefined {
  const [namespace, startTime] = text?.split(' ') ?? []
  return namespace === undefined || startTime === undefined ? undefined : { namespace, startTime }
}
