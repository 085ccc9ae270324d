import { readFile, readlink } from 'node:fs/promises'

export type ProcessStat = { readonly state: string; readonly group: number; readonly startTime: string }

/** Undefined if the process or /proc does not exist. */
export async function readProcessStat(pid: number): Promise<ProcessStat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The process name in parentheses may itself contain spaces and parentheses, so parsing starts after the last one.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, , group] = fields ?? []
  const startTime = fields?.[19]
  if (state === undefined || group === undefined || startTime === undefined) return undefined
  return { state, group: Number(group), startTime }
}

/** A zombie has ended, but its parent has not read its exit code yet. */
export function hasEnded({ state }: ProcessStat): boolean {
  return state === 'Z' || state === 'X'
}

/**
 * Identifies a process beyond its id: a process id is valid only within its pid namespace, and the system reuses ids.
 * The text form is `pid:[4026531836] 81234`.
 */
export type ProcessMark = { readonly namespace: string; readonly startTime: string }

/** Undefined if /proc does not exist. */
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
