import { readFileSync } from 'node:fs'

/** Of one clock tick, as the kernel counts for `/proc`: always a hundredth of a second on Linux. */
const tickMs = 10

/** CPU time of a process so far, all of its threads and none of its children, in milliseconds. */
export function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name stands in brackets and may hold anything, blanks and brackets included.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickMs
}

/** Memory of a process that is in RAM now, in megabytes. */
export function memoryOf(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(found?.[1] ?? 0) / 1024
}
