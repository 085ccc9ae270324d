import { z } from 'zod'
import { Approval } from '../../../../contract/approval.ts'
import { Call } from '../../../../contract/call.ts'
import type { Address } from '../../../client/address.ts'
import { type Client, toClientError } from '../../../client/client.ts'
import { type Heard, isPassing, listen } from '../../../client/events.ts'
import type { Happening } from './state.ts'

export type Following = {
  readonly address: Address
  readonly client: Client
  readonly patience: number
  readonly signal: AbortSignal
  recheck?(): Promise<void>
  on(happening: Happening): void
}

const names = ['approval-requested', 'approval-answered', 'call-ended'] as const
const pageSize = 200

/** Reports the waiting approvals and then every change, until `signal` aborts. */
export async function follow({ address, client, patience, signal, recheck, on }: Following): Promise<void> {
  const broken = Promise.withResolvers<never>()
  /** The list must be read again: the last attempt failed. */
  let stale = true
  const listening = listen({
    address,
    names,
    patience,
    signal,
    ...(recheck && { recheck }),
    onLinked(afresh) {
      on({ kind: 'linked', linked: true })
      if (afresh || stale) readAll()
    },
    onLost: () => on({ kind: 'linked', linked: false }),
    onEvent(heard) {
      if (heard.name === 'reset') readAll()
      const happening = toHappening(heard)
      if (happening) on(happening)
    },
  })
  await Promise.race([listening, broken.promise])

  function readAll(): void {
    stale = true
    listOpen(client).then(
      (items) => {
        stale = false
        if (!signal.aborted) on({ kind: 'listed', items })
      },
      (error: unknown) => {
        const failure = toClientError(error, address.url)
        if (!isPassing(failure)) broken.reject(failure)
      },
    )
  }
}

async function listOpen(client: Client): Promise<Approval[]> {
  const items: Approval[] = []
  let cursor: string | undefined
  do {
    const page: Awaited<ReturnType<Client['approvals']['list']>> = await client.approvals.list({
      state: 'waiting',
      limit: pageSize,
      ...(cursor !== undefined && { cursor }),
    })
    items.push(...page.items)
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return items
}

const AboutApproval = z.object({ approval: Approval })
/** Events contain calls without their arguments. */
const AboutCall = z.object({ call: Call.omit({ arguments: true }) })

/** Unknown forms of events from a newer gateway are ignored: the list contains the same approvals. */
function toHappening({ name, data }: Heard): Happening | undefined {
  if (name === 'call-ended') {
    const ended = AboutCall.safeParse(data)
    return ended.success ? { kind: 'call-ended', call: ended.data.call } : undefined
  }
  if (name !== 'approval-requested' && name !== 'approval-answered') return undefined
  const approval = AboutApproval.safeParse(data)
  return approval.success ? { kind: 'approval', name, approval: approval.data.approval } : undefined
}
