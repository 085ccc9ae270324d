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

/**
 * Answers a call with the server's result byte by byte: parsed and written again its numbers might change. The
 * framework is told that nothing matched, and so sends nothing more.
 */
export function sendResult(
  response: ServerResponse,
  handled: StandardHandleResult,
  result: Buffer,
): StandardHandleResult {
  if (!handled.matched || handled.response.status !== 200) return handled
  const { call } = Object(handled.response.body)
  const start = Buffer.from(`{"call":${JSON.stringify(call)},"result":`)
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(Buffer.concat([start, result, Buffer.from('}')]))
  return { matched: false, response: undefined }
}
