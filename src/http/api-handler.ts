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
 * The framework's OpenAPI handler without its serializer, which would copy values by assignment and lose the key
 * `__proto__`. Our answers are already JSON values.
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

export type Sending = {
  readonly response: ServerResponse
  /** The result of a tool call, as bytes of the server. */
  readonly result: Buffer | undefined
  /** Counts the bytes of the answer before it is written; throws if the limit is exceeded. */
  take(bytes: number): void
}

/**
 * Writes an answer, because the framework does not report its size before it writes. The result of a call is sent as the
 * original bytes: parsing and writing could change numbers. Returns "not matched", so that the framework writes nothing.
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
