import type { AuditFinding } from '../contract/audit.ts'

export type Findings = {
  add(finding: AuditFinding): void
  readonly list: readonly AuditFinding[]
  count(): number
}

const mostListed = 100

/** Counts all findings but keeps only the first ones, because an attacker may have deleted a million entries. */
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
