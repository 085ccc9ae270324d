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

const names = ['question-asked', 'question-answered', 'call-ended'] as const
const pageSize = 200

/** What happens to questions, from those that wait already on, until `signal`. */
export async function follow({ address, client, patience, signal, recheck, on }: Following): Promise<void> {
  const broken = Promise.withResolvers<never>()
  /** The list could not be read when it had to be. */
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

const AboutQuestion = z.object({ approval: Approval })
/** Calls come without their arguments. */
const AboutCall = z.object({ call: Call.omit({ arguments: true }) })

/** What a newer gateway says in another form is left out: the list has it. */
function toHappening({ name, data }: Heard): Happening | undefined {
  if (name === 'call-ended') {
    const ended = AboutCall.safeParse(data)
    return ended.success ? { kind: 'call-ended', call: ended.data.call } : undefined
  }
  if (name !== 'question-asked' && name !== 'question-answered') return undefined
  const question = AboutQuestion.safeParse(data)
  return question.success ? { kind: 'question', name, approval: question.data.approval } : undefined
}
