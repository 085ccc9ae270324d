import type { JsonObject } from '../contract/json.ts'
import type { Introduction } from '../gateway/gateway.ts'
import { tasksExtension } from '../wire/codec.ts'

/** The capabilities of the gateway for agents, in each era. */
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

/** Without the tasks of the newer era, because the older era has its own. */
export function toLegacyOffer({ extensions = {}, tasks }: Introduction): JsonObject {
  const { [tasksExtension]: _newer, ...usable } = extensions
  return {
    ...own,
    ...(tasks && { tasks: { cancel: {}, requests: { tools: { call: {} } } } }),
    ...(Object.keys(usable).length > 0 && { extensions: usable }),
  }
}
