import { oc } from '@orpc/contract'
import { z } from 'zod'
import type { CallerClass, EndpointMeta } from '../access.ts'
import { type ScopeKey, ScopeKind } from '../scope.ts'

/** The body of every error, as `toErrorBody` writes it. */
export const ErrorBody = z.object({
  error: z.object({
    code: z.string().describe('Stable; programs decide by this'),
    message: z.string().describe('What is wrong, for people'),
    hint: z.string().describe('What to do about it'),
    details: z.record(z.string(), z.unknown()).optional().describe('Facts for programs'),
  }),
})
export type ErrorBody = z.infer<typeof ErrorBody>

/** A scope as people write it. */
export const ScopeText: z.ZodType<ScopeKey> = z
  .union([z.literal('global'), z.templateLiteral([ScopeKind.exclude(['global']), ':', z.string().min(1)])], {
    error: 'must be global or KIND:NAME, such as agent:reviewer',
  })
  .describe('global or KIND:NAME, such as agent:reviewer')

export function page<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    next: z.string().nullable().describe('Pass it as `cursor` for the next page; null at the end'),
  })
}

export const paging = {
  limit: z.coerce.number().int().min(1).max(1000).default(50).describe('Entries per page'),
  cursor: z.string().optional().describe('`next` of the page before'),
}

/**
 * Every endpoint begins here, with who may use it; its errors have one shape. Other methods than GET change something
 * unless `changes` says that this one does not.
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

/** An endpoint of the table of routes that need no token. */
export const publicEndpoint = endpoint([])

/** Input of an endpoint whose path ends in an id. */
export const byId = z.object({ params: z.strictObject({ id: z.string() }) })
