import { z } from 'zod'
import { everyone } from '../access.ts'
import { Approval } from '../approval.ts'
import { Call } from '../call.ts'
import { Tool } from '../tool.ts'
import { endpoint, page } from './base.ts'

export const CallAnswer = z.object({ call: Call, result: z.unknown().describe('The result of the tool, as in MCP') })
export type CallAnswer = z.infer<typeof CallAnswer>

export const CallWaiting = z.object({
  call: Call,
  approval: Approval.describe('The approval that the call waits for. Repeat the same call to continue it'),
})
export type CallWaiting = z.infer<typeof CallWaiting>

/** Visible ASCII and spaces, because the key is sent in a header and shown in messages. */
const IdempotencyKey = z.string().regex(/^[\x20-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters')

export const tools = {
  list: endpoint(everyone)
    .route({ method: 'GET', path: '/tools', tags: ['tools'], summary: 'List the tools that the caller may use' })
    .input(
      z.strictObject({
        toolset: z.string().optional().describe('Only the tools of this toolset'),
        server: z.string().optional().describe('Only the tools of this server'),
        query: z
          .string()
          .max(1000)
          .optional()
          .describe('Words to search for in names and descriptions. The best matches come first'),
      }),
    )
    .output(page(Tool)),
  get: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/tools/{name}',
      tags: ['tools'],
      summary: 'Get one tool with its schema',
      inputStructure: 'detailed',
    })
    .input(z.object({ params: z.strictObject({ name: z.string().describe('Public name of the tool') }) }))
    .output(Tool),
  call: endpoint(everyone, false)
    .route({
      method: 'POST',
      path: '/tools/{name}/call',
      tags: ['tools'],
      summary: 'Call a tool',
      description:
        'An error of the tool is a result with `isError`. 202: the call waits for approval and was not sent; repeat the same call to continue it. It runs when it is approved. 403: the call was denied. 429: a limit was exceeded; see `Retry-After`. With an `Idempotency-Key` the call runs only once. A repeated call within a day gets the same answer, with the header `Idempotency-Replayed: true`. 422: the key was used with other arguments. 409: the first call is still running, or its outcome is not known.',
      inputStructure: 'detailed',
      outputStructure: 'detailed',
    })
    .input(
      z.object({
        params: z.strictObject({ name: z.string().describe('Public name of the tool') }),
        headers: z
          .object({
            'idempotency-key': IdempotencyKey.optional().describe(
              'Key chosen by the caller. Of all calls with the same key only one runs',
            ),
          })
          .optional(),
        body: z.strictObject({
          arguments: z
            .record(z.string(), z.json())
            .default({})
            .describe('Arguments of the call, according to the input schema of the tool'),
          toolset: z.string().optional().describe('Use this toolset to find the tool'),
        }),
      }),
    )
    .output(
      z.union([
        z.object({ status: z.literal(200).describe('The call ran'), body: CallAnswer }),
        z.object({ status: z.literal(202).describe('The call waits for approval'), body: CallWaiting }),
      ]),
    ),
}
