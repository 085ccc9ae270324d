import type { JsonObject } from '../contract/json.ts'
import { isTaskMethod, type ResolvedCall } from '../contract/permit.ts'
import { isObject } from '../lib/json.ts'

/** The parameters of the request to the server, with the server's original names. */
export function toParams({ method, original, arguments: given, input }: ResolvedCall): JsonObject {
  if (method === 'resources/read') return { uri: original, ...input }
  if (isTaskMethod(method)) return { ...given, taskId: original }
  if (method === 'completion/complete') return { ...given, ref: toReference(given, original) }
  return { name: original, arguments: given, ...input }
}

function toReference({ ref }: JsonObject, original: string): JsonObject {
  const reference = isObject(ref) ? ref : {}
  return reference.type === 'ref/prompt' ? { ...reference, name: original } : { ...reference, uri: original }
}
