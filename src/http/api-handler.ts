import type { ServerResponse } from 'node:http'
import type { AnyContractRouter } from '@orpc/contract'
import { StandardOpenAPICodec, StandardOpenAPIMatcher } from '@orpc/openapi/standard'
import {
  StandardBracketNotationSerializer,
  StandardOpenAPIJsonSerializer,
  StandardOpenAPISerializer,
} from '@orpc/openapi-client/standard'
import type { Context, Router } from '@orpc/server'
import { NodeHttpHandler } from '@orpc/server/node'
import { type StandardHandleResult, StandardHandler, type StandardHandlerOptions } from '@orpc/server/standard'

type HandlerOptions<T extends Context> = StandardHandlerOptions<T> & {
  customErrorResponseBodyEncoder: NonNullable<
    ConstructorParameters<typeof StandardOpenAPICodec>[1]
  >['customErrorResponseBodyEncoder']
}

/**
 * The framework's handler for OpenAPI, with answers written as they are. Its own serializer copies every value by
 * assignment, which loses the key `__proto__`; ours are JSON values already.
 */
export function createApiHandler<T extends Context>(
  router: Router<AnyContractRouter, T>,
  options: HandlerOptions<T>,
): NodeHttpHandler<T> {
  const serializer = new StandardOpenAPISerializer(
    new StandardOpenAPIJsonSerializer(),
    new StandardBracketNotationSerializer(),
  )
  serializer.serialize = (data: unknown) => data
  const codec = new StandardOpenAPICodec(serializer, options)
  return new NodeHttpHandler(new StandardHandler(router, new StandardOpenAPIMatcher(), codec, options), options)
}

/** What is sent instead of what the framework would make of the answer. */
export type Sending = {
  readonly response: ServerResponse
  /** The server's result of a call. */
  readonly result: Buffer | undefined
  /** Counts the answer before it is written; throws if there is no room for it. */
  take(bytes: number): void
}

/**
 * Writes an answer, counted before it is written; the framework would not tell its size. The result of a call goes out
 * byte by byte: parsed and written again its numbers might change. The framework is told that nothing matched, and so
 * sends nothing more.
 */
export function sendAnswer(handled: StandardHandleResult, { response, result, take }: Sending): StandardHandleResult {
  if (!handled.matched || handled.response.status >= 300) return handled
  const { status, body } = handled.response
  if (body === undefined) return handled
  const bytes = result === undefined ? Buffer.from(JSON.stringify(body)) : withResult(body, result)
  take(bytes.length)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
  return { matched: false, response: undefined }
}

function withResult(body: unknown, result: Buffer): Buffer {
  const { call } = Object(body)
  return Buffer.concat([Buffer.from(`{"call":${JSON.stringify(call)},"result":`), result, Buffer.from('}')])
}
