import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ViewSelector } from '../catalog/catalog.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Principal } from '../contract/principal.ts'
import type { Delivery } from '../lib/delivery.ts'
import type { Envelope } from '../wire/envelope.ts'
import type { Reply } from './reply.ts'

/** One request of an agent, parsed once, for both eras. */
export type McpRequest = {
  readonly principal: Principal
  readonly selector: ViewSelector
  readonly http: IncomingMessage
  readonly response: ServerResponse
  readonly reply: Reply
  readonly delivery: Delivery
  readonly body: Buffer
  readonly envelope: Envelope
  readonly params: JsonObject
}
