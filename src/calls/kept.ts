import { z } from 'zod'
import type { ViewSelector } from '../catalog/catalog.ts'
import type { Limits } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Permit, ResolvedCall } from '../contract/permit.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Storage } from '../storage/storage.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import { readResultName } from './own-names.ts'
import { finishResult } from './results.ts'

/** Results that were too long for their caller. The caller reads the rest by a handle, for a limited time. */
export type KeptResults = {
  /** Cuts an answer that is too long, and stores the complete answer under a handle. */
  finish(answer: Answer, permit: Permit, selector: ViewSelector): Promise<Answer>
  /** A call of `sallyport_read_result`. */
  read(permit: Permit): Promise<Answer>
  close(): void
}

type KeptParts = {
  readonly storage: Pick<Storage, 'results' | 'keys'>
  readonly limits: () => Pick<Limits, 'result' | 'kept'>
  readonly clock: Clock
  readonly ids: Ids
}

const ReadResult = z.object({
  handle: z.string().min(1).max(200),
  offset: z.coerce.number().int().min(0).default(0),
  length: z.coerce.number().int().min(1).optional(),
})

const sweepEvery = 60_000
/** Recorded instead of a handle, because a handle gives access to the result. */
const hiddenHandle = '[handle]'

export function createKeptResults({ storage, limits, clock, ids }: KeptParts): KeptResults {
  let cancelSweep = clock.after(sweepEvery, sweep)

  return {
    finish: (answer, permit, selector) =>
      finishResult(answer, {
        limit: limits().result,
        async keep(form, text) {
          const handle = ids.secret(24)
          // If the rest cannot be stored, the caller still gets the beginning.
          const kept = await storage.results
            .keep({ handle, principalId: permit.principalId, form, text })
            .catch(() => false)
          if (!kept) return { readOn: () => 'The rest could not be stored' }
          return { handle, readOn: (offset) => toInvitation(permit, selector, { handle, offset }) }
        },
      }),
    async read(permit) {
      const { handle, offset, length } = readArguments(permit)
      const { result: most, kept } = limits()
      const wish = { handle, principalId: permit.principalId, offset, length: Math.min(length ?? most, most) }
      const piece = await storage.results.read(wish, kept)
      if (!piece)
        throw new GatewayError('result-not-found', 'None of your stored results has this handle; it may have expired')
      const { text, form, total } = piece
      const end = piece.offset + text.length
      const next = end < total ? end : null
      const rest = next === null ? 'this is the end' : `continue with offset ${next}`
      return toResultAnswer({
        content: [
          { type: 'text', text },
          { type: 'text', text: `[Sallyport: characters ${piece.offset} to ${end} of ${total}; ${rest}]` },
        ],
        _meta: { [pageKey]: { form, offset: piece.offset, total, next } },
      })
    },
    close: () => cancelSweep(),
  }

  function sweep(): void {
    cancelSweep = clock.after(sweepEvery, sweep)
    // A failed sweep is repeated by the next one.
    storage.results.sweep(limits().kept).catch(() => {})
    storage.keys.sweep().catch(() => {})
  }
}

const pageKey = 'sallyport/page'

const Page = z.object({
  content: z.tuple([z.object({ text: z.string() })]).rest(z.unknown()),
  _meta: z.object({
    [pageKey]: z.object({
      form: z.enum(['text', 'json']),
      offset: z.number(),
      total: z.number(),
      next: z.number().nullable(),
    }),
  }),
})

/** The answer of `sallyport_read_result` as REST returns it. */
export function toResultPage(answer: Answer) {
  const { content, _meta } = Page.parse(answer.value())
  return { ..._meta[pageKey], text: content[0].text }
}

/** Replaces an argument in the recorded arguments. Its value is sent in `input`, which is not recorded. */
export function hideArgument(given: JsonObject, name: string): Pick<ResolvedCall, 'arguments' | 'input'> {
  const value = Object.hasOwn(given, name) ? given[name] : undefined
  if (typeof value !== 'string') return { arguments: given }
  return { arguments: { ...given, [name]: hiddenHandle }, input: { [name]: value } }
}

function readArguments(permit: Permit): z.infer<typeof ReadResult> {
  const read = ReadResult.safeParse({ ...permit.arguments, ...permit.input })
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new GatewayError('arguments-invalid', `${issue?.path.join('.') ?? 'arguments'}: ${issue?.message}`)
}

function toInvitation(
  { surface }: Permit,
  { kind }: ViewSelector,
  { handle, offset }: { handle: string; offset: number },
): string {
  if (surface === 'http') return `Read the rest with GET /api/results/${handle}?offset=${offset}`
  const where = kind === 'server' ? ' at the address /mcp of this gateway' : ''
  return `Read the rest${where} with ${readResultName} ${JSON.stringify({ handle, offset })}`
}
