import { createHash } from 'node:crypto'
import type { EventName, EventTable } from '../contract/events.ts'
import type { Server } from '../contract/server.ts'
import { toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { isObject } from '../lib/json.ts'

/** An event and when it was heard. */
export type Heard = {
  [Name in EventName]: { readonly name: Name; readonly event: EventTable[Name]; readonly at: number }
}[EventName]

export type MessageParts = {
  /** Where people look at a question; undefined while nobody can. */
  pageOf(approval: string): string | undefined
  mask<Value>(value: Value): Value
}

/** Receivers refuse what is large, and people look at the page: beyond this the arguments stay away. */
export const mostLength = 65_536

/** What is posted, as JSON. */
export function toBody(heard: Heard, { pageOf, mask }: MessageParts): string {
  const url = isQuestion(heard) ? pageOf(heard.event.approval.id) : undefined
  const data = mask({ ...toData(heard), ...(url !== undefined && { url }) })
  const whole = toText(heard.name, heard.at, data)
  if (whole.length <= mostLength) return whole
  const lean = toText(heard.name, heard.at, { ...withoutArguments(data), cut: true })
  return lean.length <= mostLength ? lean : toText(heard.name, heard.at, { cut: true })
}

export function toText(type: string, at: number, data: object): string {
  return JSON.stringify({ type, timestamp: toIso(at), data })
}

/**
 * What several gateways hear of one question has one id, so that it is sent once, whoever of them is still there to do
 * it. Everything else happens in one gateway.
 */
export function toMessageId(endpoint: string, heard: Heard, ids: Ids): string {
  if (!isQuestion(heard)) return ids.next('msg')
  const { id, answers, state } = heard.event.approval
  const end = state === 'expired' || state === 'lapsed' || state === 'withdrawn' ? state : ''
  const text = JSON.stringify([endpoint, heard.name, id, heard.name === 'question-asked' ? '' : [answers.length, end]])
  return `msg_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

/** Another gateway on the same database has this event too, and tells of it. */
export function isElsewhere(heard: Heard): boolean {
  return !isQuestion(heard) && 'elsewhere' in heard.event && heard.event.elsewhere === true
}

type Question = Extract<Heard, { name: 'question-asked' | 'question-answered' }>

function isQuestion(heard: Heard): heard is Question {
  return heard.name === 'question-asked' || heard.name === 'question-answered'
}

function toData(heard: Heard): Record<string, unknown> {
  if (heard.name === 'server-changed') return { server: withoutOutput(heard.event.server) }
  const { event } = heard
  const { elsewhere: _elsewhere, ...data } = event as EventTable[EventName] & { elsewhere?: boolean }
  return data
}

/** What a program wrote is for those who may read its logs, not for an address outside. */
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
