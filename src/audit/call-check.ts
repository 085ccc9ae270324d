import { z } from 'zod'
import { parseJson } from '../lib/json.ts'
import type { AuditTable } from '../storage/database.ts'
import type { Findings } from './findings.ts'

export type CallCheck = {
  feed(row: AuditTable): void
  /** `open` are the chains that may still grow: calls without an end may be running there. */
  end(open: ReadonlySet<string>): { running: number }
}

type Place = { readonly instance: string; readonly sequence: number }

/** Only calls that are under way are remembered; this many mean that the record is beyond following. */
const mostRemembered = 200_000

/**
 * Every call that was begun has one end. `floor` is the id below which calls are older than what retention has kept:
 * their beginning may be gone.
 */
export function createCallCheck(findings: Findings, floor: string): CallCheck {
  const begun = new Map<string, Place>()
  const ended = new Map<string, Place>()

  return {
    feed({ kind, call, instance, sequence, body }) {
      if (call === null) return
      if (kind === 'intent') return onIntent(call, { instance, sequence })
      if (kind === 'outcome') onOutcome(call, { instance, sequence }, body)
    },
    end(open) {
      let running = 0
      for (const [call, { instance, sequence }] of begun) {
        if (call < floor) continue
        if (open.has(instance)) running++
        else findings.add({ kind: 'no-outcome', message: `The call ${call} has no end`, call, instance, sequence })
      }
      for (const [call, { instance, sequence }] of ended) {
        if (call < floor) continue
        const message = `The call ${call} has an end without a beginning, or a second end`
        findings.add({ kind: 'no-intent', message, call, instance, sequence })
      }
      return { running }
    },
  }

  function onIntent(call: string, place: Place): void {
    if (ended.delete(call)) return // another instance closed it, and its chain came first
    if (begun.has(call)) {
      findings.add({ kind: 'no-outcome', message: `The call ${call} has two beginnings`, call, ...place })
    }
    if (begun.size < mostRemembered) begun.set(call, place)
  }

  function onOutcome(call: string, place: Place, body: string): void {
    if (begun.delete(call) || isRefusal(body)) return
    if (ended.size < mostRemembered) ended.set(call, place)
  }
}

/** A refused call has one entry that says both what was asked for and what became of it. */
const Refusal = z.object({ tool: z.string(), state: z.string() })

function isRefusal(body: string): boolean {
  try {
    return Refusal.safeParse(parseJson(body)).success
  } catch {
    return false
  }
}
