import { useCallback, useEffect, useRef, useState } from 'react'
import type { Verdict } from '../../../src/contract/approval.ts'
import type { GrantWish } from '../../../src/contract/grant.ts'
import { api, type Failure, toFailure } from '../lib/api.ts'
import { beforeLeaving } from '../lib/leaving.ts'

export type Decision = {
  readonly verdict: Verdict
  readonly reason?: string
  readonly grant?: GrantWish
  readonly hash: string
}

/** A decision that can be undone until `sendAt`, when it is sent. */
export type Pending = Decision & { readonly sendAt: number }

export type Decisions = {
  pending(id: string): Pending | undefined
  failure(id: string): Failure | undefined
  decide(id: string, decision: Decision): void
  undo(id: string): void
  /** The id of the last decision that can be undone. */
  last(): string | undefined
}

const undoMs = 5000

/** Sends a decision after five seconds, or earlier when the page is closed, so that no decision is lost. */
export function useDecisions(onSent: () => void): Decisions {
  const [pending, setPending] = useState<ReadonlyMap<string, Pending>>(new Map())
  const [failures, setFailures] = useState<ReadonlyMap<string, Failure>>(new Map())
  /** Decisions that are not sent yet. */
  const held = useRef(new Map<string, { timer: ReturnType<typeof setTimeout>; decision: Decision }>())
  const open = useRef(new Set<string>())

  const forget = useCallback((id: string) => {
    open.current.delete(id)
    setPending((known) => without(known, id))
  }, [])

  const send = useCallback(
    async (id: string, { verdict, reason, grant, hash }: Decision) => {
      held.current.delete(id)
      try {
        await api.approvals.answer({ params: { id }, body: { verdict, reason, grant, hash } })
      } catch (error) {
        setFailures((known) => new Map(known).set(id, toFailure(error)))
      }
      forget(id)
      onSent()
    },
    [forget, onSent],
  )

  const decide = useCallback(
    (id: string, decision: Decision) => {
      if (open.current.has(id)) return
      open.current.add(id)
      setFailures((known) => without(known, id))
      setPending((known) => new Map(known).set(id, { ...decision, sendAt: Date.now() + undoMs }))
      held.current.set(id, { decision, timer: setTimeout(() => void send(id, decision), undoMs) })
    },
    [send],
  )

  const undo = useCallback(
    (id: string) => {
      const waiting = held.current.get(id)
      if (!waiting) return
      clearTimeout(waiting.timer)
      held.current.delete(id)
      forget(id)
    },
    [forget],
  )

  useEffect(() => {
    const sendNow = async () => {
      const leaving = [...held.current]
      held.current.clear()
      for (const [id, { timer }] of leaving) {
        clearTimeout(timer)
        forget(id)
      }
      await Promise.all(leaving.map(([id, { decision }]) => sendInLeaving(id, decision)))
    }
    const onHide = () => void sendNow()
    const stop = beforeLeaving(sendNow)
    addEventListener('pagehide', onHide)
    return () => {
      stop()
      removeEventListener('pagehide', onHide)
      onHide()
    }
  }, [forget])

  return {
    pending: (id) => pending.get(id),
    failure: (id) => failures.get(id),
    decide,
    undo,
    last: () => [...held.current.keys()].at(-1),
  }
}

/** Uses `keepalive`, so that the browser completes the request after the page is closed. */
async function sendInLeaving(id: string, { verdict, reason, grant, hash }: Decision): Promise<void> {
  await fetch(`/api/approvals/${encodeURIComponent(id)}/answer`, {
    method: 'POST',
    keepalive: true,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ verdict, reason, grant, hash }),
  }).catch(() => undefined)
}

function without<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}
