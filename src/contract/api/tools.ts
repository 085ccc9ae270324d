import { z } from 'zod'
import { everyone } from '../access.ts'
import { Approval } from '../approval.ts'
import { Call } from '../call.ts'
import { Tool } from '../tool.ts'
import { endpoint, page } from './base.ts'

export const CallAnswer = z.object({ call: Call, result: z.unknown().describe("The tool's result, as MCP shapes it") })
export type CallAnswer = z.infer<typeof CallAnswer>

export const CallWaiting = z.object({
  call: Call,
  approval: Approval.describe('The question that a person is asked; the same call made again goes on from there'),
})
export type CallWaiting = z.infer<typeof CallWaiting>

/** Visible ASCII and blanks: a key stands in a header, and in messages for people. */
const IdempotencyKey = z.string().regex(/^[\x20-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters')

export const tools = {
  list: endpoint(everyone)
    .route({ method: 'GET', path: '/tools', tags: ['tools'], summary: 'The tools the caller may use' })
    .input(
      z.strictObject({
        toolset: z.string().optional().describe('Only the tools of this toolset'),
        server: z.string().optional().describe('Only the tools of this server'),
        query: z
          .string()
          .max(1000)
          .optional()
          .describe('Words to look for in names and descriptions, best match first'),
      }),
    )
    .output(page(Tool)),
  get: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/tools/{name}',
      tags: ['tools'],
      summary: 'One tool with its schema',
      inputStructure: 'detailed',
    })
    .input(z.object({ params: z.strictObject({ name: z.string().describe('Public name of the tool') }) }))
    .output(Tool),
  call: endpoint(everyone, false)
    .route({
      method: 'POST',
      path: '/tools/{name}/call',
      tags: ['tools'],
      summary: 'Run a tool',
      description:
        "A tool's own failure is a result with `isError`. 202 while a person is asked: nothing was sent, and the same call made again goes on from there and runs once it is approved. 403 when denied, 429 with Retry-After over a limit. With an `Idempotency-Key` the call runs once: repeated within a day it gets the same answer, marked with `Idempotency-Replayed: true`; 422 with other arguments, 409 while the first one runs or when nobody knows whether it took effect.",
      inputStructure: 'detailed',
      outputStructure: 'detailed',
    })
    .input(
      z.object({
        params: z.strictObject({ name: z.string().describe('Public name of the tool') }),
        headers: z
          .object({
            'idempotency-key': IdempotencyKey.optional().describe('Runs the call once, however often it is sent'),
          })
          .optional(),
        body: z.strictObject({
          arguments: z.record(z.string(), z.json()).default({}).describe("By the tool's input schema"),
          toolset: z.string().optional().describe('Call it as a tool of this toolset'),
        }),
      }),
    )
    .output(
      z.union([
        z.object({ status: z.literal(200).describe('It ran'), body: CallAnswer }),
        z.object({ status: z.literal(202).describe('A person is asked'), body: CallWaiting }),
      ]),
    ),
}
