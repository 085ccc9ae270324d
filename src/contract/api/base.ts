import { oc } from '@orpc/contract'
import { z } from 'zod'
import type { CallerClass, EndpointMeta } from '../access.ts'
import { type ScopeKey, ScopeKind } from '../scope.ts'

/** The body of every error, as `toErrorBody` writes it. */
export const ErrorBody = z.object({
  error: z.object({
    code: z.string().describe('Error code. It is stable, so programs can use it'),
    message: z.string().describe('What is wrong'),
    hint: z.string().describe('What to do'),
    docs: z
      .string()
      .optional()
      .describe('Path of the section about the error code, to append to the address of the gateway'),
    details: z.record(z.string(), z.unknown()).optional().describe('Further data for programs'),
  }),
})
export type ErrorBody = z.infer<typeof ErrorBody>

/** A scope as text. */
export const ScopeText: z.ZodType<ScopeKey> = z
  .union([z.literal('global'), z.templateLiteral([ScopeKind.exclude(['global']), ':', z.string().min(1)])], {
    error: 'must be global or KIND:NAME, such as agent:reviewer',
  })
  .describe('global or KIND:NAME, such as agent:reviewer')

export function page<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    next: z.string().nullable().describe('Value of `cursor` for the next page; null on the last page'),
  })
}

export const paging = {
  limit: z.coerce.number().int().min(1).max(1000).default(50).describe('Entries per page'),
  cursor: z.string().optional().describe('`next` of the previous page'),
}

/**
 * Creates an endpoint for these callers. All endpoints have the same error body. An endpoint with a method other than GET is
 * a change, unless `changes` is false.
 */
export function endpoint(callers: readonly CallerClass[], changes?: false) {
  return oc.$meta<EndpointMeta>({ callers, ...(changes === false && { changes }) }).$route({
    spec: (operation) => ({
      ...operation,
      'x-access': [...callers],
      responses: { ...operation.responses, default: { $ref: '#/components/responses/Error' } },
    }),
  })
}

/** For endpoints in `publicRoutes`, which need no token. */
export const publicEndpoint = endpoint([])

/** Input of an endpoint whose path contains an id. */
export const byId = z.object({ params: z.strictObject({ id: z.string() }) })
