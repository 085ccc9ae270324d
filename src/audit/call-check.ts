import { z } from 'zod'
import { parseJson } from '../lib/json.ts'
import type { AuditTable } from '../storage/database.ts'
import type { Findings } from './findings.ts'

export type CallCheck = {
  feed(row: AuditTable): void
  /** `open` are the chains of running instances. Calls without an outcome may still be running there. */
  end(open: ReadonlySet<string>): { running: number }
}

type Place = { readonly instance: string; readonly sequence: number }

/** Only unfinished calls are kept in memory. With more than this the check becomes incomplete. */
const mostRemembered = 200_000

/**
 * Checks that every call has exactly one intent and one outcome. If another instance wrote the outcome `unknown`, one
 * late outcome of the instance that began the call may follow. Calls with an id below `floor` are skipped, because
 * retention may have removed their intent.
 */
export function createCallCheck(findings: Findings, floor: string): CallCheck {
  const begun = new Map<string, Place>()
  const ended = new Map<string, Place>()
  /** Calls that another instance closed as `unknown`, with that instance and the one that began the call. */
  const closed = new Map<string, { by?: string; owner?: string }>()
  const late = new Map<string, Place>()

  return {
    feed({ kind, call, instance, sequence, body }) {
      if (call === null) return
      const place = { instance, sequence }
      if (kind === 'intent') onIntent(call, place)
      if (kind === 'outcome') onOutcome(call, place, body)
      if (kind === 'late-outcome') onLate(call, place)
    },
    end(open) {
      let running = 0
      for (const [call, { instance, sequence }] of begun) {
        if (call < floor) continue
        if (open.has(instance)) running++
        else findings.add({ kind: 'no-outcome', message: `The call ${call} has no outcome`, call, instance, sequence })
      }
      for (const [call, { instance, sequence }] of ended) {
        if (call < floor) continue
        const message = `The call ${call} has an outcome without an intent, or a second outcome`
        findings.add({ kind: 'no-intent', message, call, instance, sequence })
      }
      for (const [call, place] of late) if (call >= floor) checkLate(call, place)
      return { running }
    },
  }

  function onIntent(call: string, place: Place): void {
    const known = closed.get(call)
    if (known) known.owner = place.instance
    if (ended.delete(call)) return // another instance wrote the outcome, and its chain was read first
    if (begun.has(call)) {
      findings.add({ kind: 'no-outcome', message: `The call ${call} has two intents`, call, ...place })
    }
    if (begun.size < mostRemembered) begun.set(call, place)
  }

  function onOutcome(call: string, place: Place, body: string): void {
    const beginning = begun.get(call)
    if (beginning?.instance !== place.instance && isUnknown(body) && closed.size < mostRemembered) {
      closed.set(call, { by: place.instance, ...(beginning && { owner: beginning.instance }) })
    }
    if (begun.delete(call) || isRefusal(body)) return
    if (ended.size < mostRemembered) ended.set(call, place)
  }

  function onLate(call: string, place: Place): void {
    if (late.has(call)) {
      const message = `The call ${call} has two late outcomes`
      return findings.add({ kind: 'late-outcome', message, call, ...place })
    }
    if (late.size < mostRemembered) late.set(call, place)
  }

  function checkLate(call: string, place: Place): void {
    const { by, owner } = closed.get(call) ?? {}
    if (by !== undefined && by !== place.instance && owner === place.instance) return
    const message = `The call ${call} has a late outcome, but no other instance had closed the call as unknown`
    findings.add({ kind: 'late-outcome', message, call, ...place })
  }
}

const Unknown = z.object({ state: z.literal('unknown') })

function isUnknown(body: string): boolean {
  return body.includes('"unknown"') && fitsBody(Unknown, body)
}

/** A refused call has a single entry, which contains both the intent and the outcome. */
const Refusal = z.object({ tool: z.string(), state: z.string() })

function isRefusal(body: string): boolean {
  return fitsBody(Refusal, body)
}

function fitsBody(shape: z.ZodType, body: string): boolean {
  try {
    return shape.safeParse(parseJson(body)).success
  } catch {
    return false
  }
}
