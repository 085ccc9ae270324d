import type { Fields } from '../../fixtures/lib/json-rpc.ts'

/** A tool as the model is offered it; agents of one kind tell the server apart from the name. */
export type OfferedTool = { readonly name: string; readonly namespace?: string }

/** What an agent sends its model, whatever the service it thinks it speaks to. */
export type Turn = {
  readonly tools: readonly OfferedTool[]
  /** What the tools said that the model has called so far, oldest first. */
  readonly results: readonly string[]
}

export type Reply =
  | { readonly kind: 'call'; readonly tool: OfferedTool; readonly arguments: Fields }
  | { readonly kind: 'text'; readonly text: string }

/** One event of a stream, or the whole of an answer that is none. */
export type Chunk = { readonly event?: string; readonly data: Fields | string }

/** How one service of models is spoken to. */
export type Format = {
  /** Whether a request to this path is in this format. */
  reads(path: string): boolean
  read(body: Fields): Turn
  /** `id` is new for each answer. */
  write(reply: Reply, id: string): { readonly whole: Fields; readonly stream: readonly Chunk[] }
  /** Whether the agent wants its answer in events. */
  streams(path: string, body: Fields): boolean
}

export function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** The text in what may be text already, or parts of it. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value
  return toList(value).map(partText).join('') || JSON.stringify(value)
}

function partText(part: unknown): string {
  const { text } = Object(part)
  return typeof text === 'string' ? text : ''
}
