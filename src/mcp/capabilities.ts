import type { JsonObject } from '../contract/json.ts'
import type { Introduction } from '../gateway/gateway.ts'

const own = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
}

/** What this gateway offers to agents, in either era, with the extensions of the servers behind the address. */
export function toOffered({ extensions }: Introduction): JsonObject {
  return { ...own, ...(extensions && { extensions }) }
}
