import type { JsonObject } from '../contract/json.ts'
import type { Permit } from '../contract/permit.ts'
import type { Risk } from '../contract/risk.ts'
import type { Answer } from '../wire/answer.ts'
import type { Caller } from '../wire/caller.ts'

/** A server whose tools run inside the gateway. Its calls are decided, claimed and recorded like all others. */
export type InProcessServer = {
  /** Also the id of its connection. No configured server can have this name. */
  readonly name: string
  readonly tools: readonly InProcessTool[]
  /** The last step of a call, as `send` is for other servers. Answers fit the limit for results and are never cut. */
  call(permit: Permit, caller: Caller): Promise<Answer>
}

/** A tool under its public name. */
export type InProcessTool = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly risk: Risk
  /** Rules can deny the tool, but not require an approval for it. */
  readonly neverAsks?: true
  /** The argument that gives access to data to anyone who knows it: sent, but not recorded. */
  readonly bearer?: string
}
