import type { AuditFinding } from '../contract/audit.ts'

export type Findings = {
  add(finding: AuditFinding): void
  readonly list: readonly AuditFinding[]
  count(): number
}

const mostListed = 100

/** Counts all and keeps the first: somebody who deletes a million entries must not fill the memory with it. */
export function createFindings(): Findings {
  const list: AuditFinding[] = []
  let count = 0
  return {
    add(finding) {
      count++
      if (list.length < mostListed) list.push(finding)
    },
    list,
    count: () => count,
  }
}
