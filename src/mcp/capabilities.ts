import type { JsonObject } from '../contract/json.ts'
import type { Introduction } from '../gateway/gateway.ts'
import { tasksExtension } from '../wire/codec.ts'

/** What this gateway offers to agents in either era. */
const own = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
}

export function toModernOffer({ extensions }: Introduction): JsonObject {
  return { ...own, ...(extensions && { extensions }) }
}

/** Tasks of the newer era are of no use here; this one has its own. */
export function toLegacyOffer({ extensions = {}, tasks }: Introduction): JsonObject {
  const { [tasksExtension]: _newer, ...usable } = extensions
  return {
    ...own,
    ...(tasks && { tasks: { cancel: {}, requests: { tools: { call: {} } } } }),
    ...(Object.keys(usable).length > 0 && { extensions: usable }),
  }
}
