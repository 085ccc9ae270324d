import { z } from 'zod'
import type { ApprovalStore } from '../approvals/approvals.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Permit } from '../contract/permit.ts'
import type { Clock } from '../lib/clock.ts'
import { onAbort, toCancellation } from '../lib/signals.ts'
import type { InProcessServer, InProcessTool } from '../servers/servers.ts'
import type { StoredApproval } from '../storage/tables/approvals.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import type { KeptResults } from './kept.ts'
import { approvalStatusName, ownServerName, readResultName, waitForApprovalName } from './own-names.ts'

/** The server with the gateway's own tools. `close` ends the calls that wait for an approval. */
export type OwnServer = InProcessServer & { close(): void }

type OwnServerParts = {
  readonly kept: Pick<KeptResults, 'read'>
  readonly approvalStore: Pick<ApprovalStore, 'find' | 'settled'>
  readonly clock: Clock
}

/** In seconds. Many agents cancel calls that take longer without progress. */
const wait = { most: 60, usual: 25 } as const

const approvalId = { type: 'string', description: 'The id of the approval, from the answer to the waiting call' }

const tools: readonly InProcessTool[] = [
  {
    name: readResultName,
    title: 'Read the rest of a result',
    description:
      'Reads the rest of a result that Sallyport cut because it was too long. The end of the cut result contains the handle and the offset of the rest.',
    inputSchema: toSchema({
      handle: { type: 'string', description: 'The handle from the cut result' },
      offset: { type: 'integer', minimum: 0, default: 0, description: 'Characters to skip from the beginning' },
      length: {
        type: 'integer',
        minimum: 1,
        description: 'The most characters to return. Default: as many as fit into one result',
      },
    }),
    risk: 'read',
    bearer: 'handle',
  },
  {
    name: approvalStatusName,
    title: 'State of an approval',
    description:
      'Returns the state of an approval for one of your calls: whether a person has answered, the reason of a denial, and what to do next.',
    inputSchema: toSchema({ id: approvalId }),
    risk: 'read',
    neverAsks: true,
  },
  {
    name: waitForApprovalName,
    title: 'Wait for an approval',
    description:
      'Waits until a person has answered an approval for one of your calls, or until the given time has passed, and returns what to do next. It does not run the call: once it is approved, repeat the same call.',
    inputSchema: toSchema({
      id: approvalId,
      seconds: {
        type: 'number',
        minimum: 0,
        maximum: wait.most,
        default: wait.usual,
        description: 'The longest time to wait, in seconds',
      },
    }),
    risk: 'read',
    neverAsks: true,
  },
]

/** The first property is required. */
function toSchema(properties: JsonObject): JsonObject {
  return {
    type: 'object',
    properties,
    required: Object.keys(properties).slice(0, 1),
    additionalProperties: false,
  }
}

const Wanted = z.object({
  id: z.string().min(1).max(200),
  seconds: z.coerce.number().min(0).max(wait.most).default(wait.usual),
})

export function createOwnServer({ kept, approvalStore, clock }: OwnServerParts): OwnServer {
  const closing = new AbortController()

  return {
    name: ownServerName,
    tools,
    async call(permit, { signal }) {
      if (permit.original === readResultName) return kept.read(permit)
      const { id, seconds } = readWanted(permit)
      const approval = await findOwn(permit, id)
      if (permit.original === approvalStatusName) return toStatus(approval)
      await untilSettled(approval, seconds * 1000, signal)
      if (signal.aborted) throw toCancellation(signal, 'unsent')
      return toStatus(await findOwn(permit, id))
    },
    close: () => closing.abort(),
  }

  /** The same error for an approval of another principal as for one that does not exist. */
  async function findOwn({ principalId }: Permit, id: string): Promise<StoredApproval> {
    const approval = await approvalStore.find(id)
    if (approval?.principalId === principalId) return approval
    throw new GatewayError('approval-not-found', `None of your calls has an approval with the id ${JSON.stringify(id)}`)
  }

  async function untilSettled(approval: StoredApproval, milliseconds: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const cancel = clock.after(milliseconds, end)
    const unlinks = [signal, closing.signal].map((each) => onAbort(each, end))
    try {
      await approvalStore.settled(approval, ending.signal)
    } catch (error) {
      if (!ending.signal.aborted) throw error
    } finally {
      cancel()
      for (const unlink of unlinks) unlink()
    }
  }
}

function toStatus(approval: StoredApproval): Answer {
  const { id, state, tool, expiresAt, answers } = approval
  const last = answers.at(-1)
  const reason = state === 'denied' ? last?.reason : undefined
  const next = nextSteps[state](approval)
  const why = reason === undefined ? '' : ` The reason: ${reason}.`
  return toResultAnswer({
    content: [{ type: 'text', text: `${state}: approval ${id} for ${tool}.${why} ${next}` }],
    structuredContent: { id, state, tool, ...(reason !== undefined && { reason }), expiresAt, next },
  })
}

const askAgain = 'Nothing was sent. Repeat the call to request a new approval.'

const nextSteps: Readonly<Record<StoredApproval['state'], (approval: StoredApproval) => string>> = {
  waiting: ({ id, expiresAt }) =>
    `No person has answered yet; it expires at ${expiresAt}. Wait with ${waitForApprovalName} ${JSON.stringify({ id })}, or repeat the same call.`,
  approved: () => 'Repeat the same call. It will run once.',
  used: ({ live }) =>
    live
      ? 'The call has run. Repeat the same call to get its result.'
      : 'The call has run, and its result was delivered. The same call made again is a new call.',
  denied: () => 'A person denied the call, and nothing was sent. Consider the reason before you try anything else.',
  expired: () => askAgain,
  lapsed: () => `It was approved, but the call was not repeated in time. ${askAgain}`,
  withdrawn: ({ withdrawnBecause }) =>
    `${withdrawnBecause ?? 'The approved call is not the call that would run now'}. ${askAgain}`,
}

function readWanted(permit: Permit): z.infer<typeof Wanted> {
  const read = Wanted.safeParse(permit.arguments)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new GatewayError('arguments-invalid', `${issue?.path.join('.') ?? 'arguments'}: ${issue?.message}`)
}
