import { useCallback, useEffect, useRef, useState } from 'react'
import type { Verdict } from '../../../src/contract/approval.ts'
import type { GrantWish } from '../../../src/contract/grant.ts'
import { api, type Failure, toFailure } from '../lib/api.ts'

export type Decision = {
  readonly verdict: Verdict
  readonly reason?: string
  readonly grant?: GrantWish
  readonly hash: string
}

/** Decided, and not sent yet: it can be taken back until `sendAt`. */
export type Pending = Decision & { readonly sendAt: number }

export type Decisions = {
  pending(id: string): Pending | undefined
  failure(id: string): Failure | undefined
  decide(id: string, decision: Decision): void
  undo(id: string): void
  /** The last one that can still be taken back. */
  readonly last: string | undefined
}

const undoMs = 5000

/** A decision is sent after five seconds, or when the page goes away: what a person decided is not lost. */
export function useDecisions(onSent: (id: string) => void): Decisions {
  const [pending, setPending] = useState<ReadonlyMap<string, Pending>>(new Map())
  const [failures, setFailures] = useState<ReadonlyMap<string, Failure>>(new Map())
  const timers = useRef(new Map<string, ReturnType<typeof setTimeout>>())
  const latest = useRef(pending)
  latest.current = pending

  const forget = useCallback((id: string) => {
    clearTimeout(timers.current.get(id))
    timers.current.delete(id)
    setPending((known) => without(known, id))
  }, [])

  const send = useCallback(
    async (id: string, { verdict, reason, grant, hash }: Decision) => {
      try {
        await api.approvals.answer({ params: { id }, body: { verdict, reason, grant, hash } })
      } catch (error) {
        setFailures((known) => new Map(known).set(id, toFailure(error)))
      }
      forget(id)
      onSent(id)
    },
    [forget, onSent],
  )

  const decide = useCallback(
    (id: string, decision: Decision) => {
      if (timers.current.has(id)) return
      setFailures((known) => without(known, id))
      setPending((known) => new Map(known).set(id, { ...decision, sendAt: Date.now() + undoMs }))
      timers.current.set(
        id,
        setTimeout(() => void send(id, decision), undoMs),
      )
    },
    [send],
  )

  useEffect(() => {
    const onHide = () => {
      for (const [id, { verdict, reason, grant, hash }] of latest.current) {
        if (!timers.current.has(id)) continue
        clearTimeout(timers.current.get(id))
        timers.current.delete(id)
        void fetch(`/api/approvals/${encodeURIComponent(id)}/answer`, {
          method: 'POST',
          keepalive: true,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ verdict, reason, grant, hash }),
        })
      }
    }
    addEventListener('pagehide', onHide)
    return () => {
      removeEventListener('pagehide', onHide)
      onHide()
    }
  }, [])

  return {
    pending: (id) => pending.get(id),
    failure: (id) => failures.get(id),
    decide,
    undo: forget,
    last: [...pending.keys()].at(-1),
  }
}

function without<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}
