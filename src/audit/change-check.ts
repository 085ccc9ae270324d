import { z } from 'zod'
import { parseJson } from '../lib/json.ts'
import type { AuditTable } from '../storage/database.ts'
import type { Findings } from './findings.ts'

export type ChangeCheck = {
  feed(row: Pick<AuditTable, 'kind' | 'instance' | 'sequence' | 'body'>): void
  /** `open` are the chains of running instances: a change without an outcome may still be running there. */
  end(open: ReadonlySet<string>): void
}

type Place = { readonly instance: string; readonly sequence: number }

/** With more changes without an outcome than this, the check becomes incomplete. */
const mostRemembered = 100_000

/** Changes that are recorded before they take effect have an id. Each of them has one outcome. */
export function createChangeCheck(findings: Findings, floor: string): ChangeCheck {
  const begun = new Map<string, Place>()
  /** Outcomes whose intent has not been read yet: another instance may have recorded the outcome. */
  const ended = new Map<string, Place>()

  return {
    feed({ kind, body, instance, sequence }) {
      if (kind !== 'change' && kind !== 'change-outcome') return
      const id = findId(body)
      if (id === undefined) return
      const [own, other] = kind === 'change' ? [begun, ended] : [ended, begun]
      if (!other.delete(id) && own.size < mostRemembered) own.set(id, { instance, sequence })
    },
    end(open) {
      for (const [id, place] of begun) {
        if (id < floor || open.has(place.instance)) continue
        findings.add({ kind: 'no-outcome', message: `The change ${id} has no outcome`, ...place })
      }
      for (const [id, place] of ended) {
        if (id < floor) continue
        const message = `The change ${id} has an outcome without an intent, or a second outcome`
        findings.add({ kind: 'no-intent', message, ...place })
      }
    },
  }
}

const WithId = z.object({ id: z.string().startsWith('change_') })

function findId(body: string): string | undefined {
  if (!body.includes('"change_')) return undefined
  try {
    return WithId.safeParse(parseJson(body)).data?.id
  } catch {
    return undefined
  }
}
