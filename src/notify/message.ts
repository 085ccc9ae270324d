import { createHash } from 'node:crypto'
import type { EventName, EventTable } from '../contract/events.ts'
import type { Server } from '../contract/server.ts'
import { toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { isObject } from '../lib/json.ts'

/** An event and the time when it was received. */
export type ReceivedEvent = {
  [Name in EventName]: { readonly name: Name; readonly event: EventTable[Name]; readonly at: number }
}[EventName]

export type MessageParts = {
  /** The address of an approval's page; undefined if the gateway has no address yet. */
  pageOf(approval: string): string | undefined
  mask<Value>(value: Value): Value
}

/** Receivers refuse large messages. A longer message is sent without arguments, which are on the approval's page. */
export const mostLength = 65_536

/** The JSON body of a message. */
export function toBody(received: ReceivedEvent, { pageOf, mask }: MessageParts): string {
  const url = isApproval(received) ? pageOf(received.event.approval.id) : undefined
  const data = mask({ ...toData(received), ...(url !== undefined && { url }) })
  const whole = toText(received.name, received.at, data)
  if (whole.length <= mostLength) return whole
  const lean = toText(received.name, received.at, { ...withoutArguments(data), cut: true })
  return lean.length <= mostLength ? lean : toText(received.name, received.at, { cut: true })
}

export function toText(type: string, at: number, data: object): string {
  return JSON.stringify({ type, timestamp: toIso(at), data })
}

/**
 * Several gateways receive the events of one approval. They compute the same id, so that the message is sent only once.
 * Other events occur in one gateway only and get a new id.
 */
export function toMessageId(endpoint: string, received: ReceivedEvent, ids: Ids): string {
  if (!isApproval(received)) return ids.next('msg')
  const { id, answers, state } = received.event.approval
  const end = state === 'expired' || state === 'lapsed' || state === 'withdrawn' ? state : ''
  const text = JSON.stringify([
    endpoint,
    received.name,
    id,
    received.name === 'approval-requested' ? '' : [answers.length, end],
  ])
  return `msg_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

/** Another gateway on the same database made this event and sends it. */
export function isElsewhere(received: ReceivedEvent): boolean {
  return !isApproval(received) && 'elsewhere' in received.event && received.event.elsewhere === true
}

type Approval = Extract<ReceivedEvent, { name: 'approval-requested' | 'approval-answered' }>

function isApproval(received: ReceivedEvent): received is Approval {
  return received.name === 'approval-requested' || received.name === 'approval-answered'
}

function toData(received: ReceivedEvent): Record<string, unknown> {
  if (received.name === 'server-changed') return { server: withoutOutput(received.event.server) }
  const { event } = received
  const { elsewhere: _elsewhere, ...data } = event as EventTable[EventName] & { elsewhere?: boolean }
  return data
}

/** Removes the output of a program: only users who may read its logs may see it, not an outside address. */
function withoutOutput({ error, ...server }: Server): Server {
  if (!error) return server
  const { output: _output, ...told } = error
  return { ...server, error: told }
}

function withoutArguments(data: Record<string, unknown>): Record<string, unknown> {
  const lean = (value: unknown) =>
    isObject(value) ? { ...value, arguments: undefined, meta: undefined, input: undefined } : value
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, lean(value)]))
}
