import { readFileSync } from 'node:fs'

/** Milliseconds of one clock tick in `/proc`, always 10 on Linux. */
const tickMs = 10

/** CPU time of a process in milliseconds, with all threads and without children. */
export function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The process name is in brackets and may contain any characters, also spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickMs
}

/** Resident memory of a process in megabytes. */
export function memoryOf(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(found?.[1] ?? 0) / 1024
}
