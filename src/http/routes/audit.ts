import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { implement } from '@orpc/server'
import { AuditExport } from '../../contract/api/audit.ts'
import { api } from '../../contract/api.ts'
import type { AuditEntry } from '../../contract/audit.ts'
import type { Call } from '../../contract/call.ts'
import { GatewayError } from '../../contract/errors.ts'
import { toPrincipalKey } from '../../contract/principal.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Delivery } from '../../lib/delivery.ts'
import { type ApiContext, never } from './context.ts'

export function createAuditRoutes(gateway: Gateway) {
  const on = implement(api.audit).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input }) => {
      const page = await gateway.audit.list(toQuery(input))
      return { items: page.items, next: page.next ?? null }
    }),
    verify: on.verify.handler(({ signal }) => gateway.audit.verify(signal ?? never)),
    export: on.export.handler(() => {
      throw new GatewayError('internal', 'The export must be streamed before the request reaches this handler')
    }),
    confirmClock: on.confirmClock.handler(async ({ input, context }) => {
      await gateway.audit.confirmClock(toPrincipalKey(context.principal), Date.parse(input.time))
      return { retention: gateway.status().retention }
    }),
    get: on.get.handler(({ input }) => getEntries(gateway, input.params.id)),
  })
}

type Exporting = { readonly response: ServerResponse; readonly delivery: Pick<Delivery, 'expectReading'> }

/** Streams the export, because the audit may be larger than the memory. */
export async function sendExport(
  gateway: { readonly audit: Pick<Gateway['audit'], 'export'> },
  query: URLSearchParams,
  { response, delivery }: Exporting,
): Promise<void> {
  const parsed = AuditExport.safeParse(Object.fromEntries(query))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new GatewayError('request-invalid', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is invalid'}`)
  }
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const { format } = parsed.data
  const pieces = gateway.audit.export(toQuery(parsed.data), gone.signal)
  response.writeHead(200, {
    'content-type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
    'content-disposition': `attachment; filename="sallyport-audit.${format}"`,
  })
  await pipeline(whileRead(pieces, delivery), response)
}

/** Yields the next piece only after the client has read the previous one. */
async function* whileRead(pieces: AsyncIterable<string>, delivery: Exporting['delivery']): AsyncGenerator<string> {
  for await (const piece of pieces) {
    const stopExpecting = delivery.expectReading(piece.length)
    try {
      yield piece
    } finally {
      stopExpecting()
    }
  }
}

type Times = { readonly since?: string; readonly until?: string }

/** Converts times to milliseconds. */
function toQuery<Input extends Times>({ since, until, ...rest }: Input) {
  return { ...rest, since: toMilliseconds(since), until: toMilliseconds(until) }
}

function toMilliseconds(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time)
}

async function getEntries(gateway: Gateway, id: string): Promise<{ entries: AuditEntry[]; call?: Call }> {
  const [, instance, sequence] = /^(.+):(\d{1,15})$/.exec(id) ?? []
  if (instance !== undefined) {
    const entry = await gateway.audit.find(instance, Number(sequence))
    if (entry) return { entries: [entry] }
    throw new GatewayError('not-found', `The audit has no entry ${id}`)
  }
  const call = await gateway.calls.find(id)
  const { items } = await gateway.audit.list({ call: id, limit: 1000 })
  if (call || items.length > 0) return { entries: items.reverse(), ...(call && { call }) }
  throw new GatewayError('call-not-found', `No call has the id ${id}`)
}
