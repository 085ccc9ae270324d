import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { relatedTaskKey, tasksExtension } from './codec.ts'

/** `_meta` of a request, split by what happens to its keys. Keys for this connection only are dropped. */
export type CallMeta = {
  /** W3C trace context. It is passed on, but it is not part of what an approval is valid for: it differs in every request. */
  readonly trace?: JsonObject
  /** All other keys for the server. They are judged, approved, shown and recorded like arguments. */
  readonly meta?: JsonObject
}

const none: CallMeta = {}

export function readMeta(given: JsonObject): CallMeta {
  const trace: [string, JsonValue][] = []
  const meta: [string, JsonValue][] = []
  for (const [key, value] of Object.entries(given)) {
    if (isHopKey(key)) continue
    const form = Object.hasOwn(traceForms, key) ? traceForms[key] : undefined
    if (form === undefined) meta.push([key, value])
    else if (typeof value === 'string' && form(value)) trace.push([key, value])
  }
  if (trace.length === 0 && meta.length === 0) return none
  const isTraced = trace.some(([key]) => key === 'traceparent')
  const valid = isTraced ? trace : trace.filter(([key]) => key !== 'tracestate')
  return {
    ...(valid.length > 0 && { trace: Object.fromEntries(valid) }),
    ...(meta.length > 0 && { meta: Object.fromEntries(meta) }),
  }
}

const protocolPrefix = 'io.modelcontextprotocol/'

/** The protocol's own keys that are passed from the caller to the server. */
const endToEnd: ReadonlySet<string> = new Set([relatedTaskKey])

/**
 * Keys with which agents number their requests. Most differ in every request, so a repeated call would never match its
 * approval. No server depends on them.
 */
const clientKeys: ReadonlySet<string> = new Set([
  'callId',
  'x-codex-turn-metadata',
  'vscode.conversationId',
  'vscode.requestId',
])
const clientPrefixes = ['claudecode/', 'ai.opencode/', 'antigravity.google/'] as const

/** Whether a key belongs to the connection between the caller and the gateway, so that it is not passed on. */
function isHopKey(key: string): boolean {
  if (key === 'progressToken' || clientKeys.has(key)) return true
  if (key.startsWith(protocolPrefix)) return !endToEnd.has(key)
  return clientPrefixes.some((prefix) => key.startsWith(prefix))
}

/** Approvals ignore trace context, so it is limited to its exact, short form: https://www.w3.org/TR/trace-context/ */
const traceForms: Readonly<Record<string, (value: string) => boolean>> = {
  traceparent: isTraceParent,
  tracestate: (value) => isList(value, { characters: 512, members: 32, member: stateMember }),
  baggage: (value) => isList(value, { characters: 1024, members: 32, member: baggageMember }),
}

function isTraceParent(value: string): boolean {
  if (!/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value)) return false
  const [version, trace, parent] = value.split('-')
  return version !== 'ff' && /[^0]/.test(trace ?? '') && /[^0]/.test(parent ?? '')
}

const stateMember =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

const baggageMember =
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*=[ \t]*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*(?:[ \t]*;[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*)?)*$/

type ListForm = { readonly characters: number; readonly members: number; readonly member: RegExp }

function isList(value: string, { characters, members, member }: ListForm): boolean {
  if (value === '' || value.length > characters) return false
  const found = value.split(',').map((each) => each.replace(/^[ \t]+|[ \t]+$/g, ''))
  return found.length <= members && found.every((each) => member.test(each))
}

export type Declared = {
  /** Capabilities of the protocol. They are passed on and are not part of what an approval is valid for. */
  readonly plain: JsonObject
  /** All other declared capabilities. A server gets them with each call, so they are treated like keys of `_meta`. */
  readonly beyond: JsonObject | undefined
}

export function splitCapabilities(declared: JsonObject): Declared {
  const { plain, beyond } = split(declared, ownCapabilities)
  return { plain, beyond: Object.keys(beyond).length > 0 ? beyond : undefined }
}

type Shape = { readonly [name: string]: Shape | ((value: JsonValue) => boolean) }

const isFlag = (value: JsonValue) => typeof value === 'boolean'
const appType = 'text/html;profile=mcp-app'

/** All capabilities of the protocol and of its extensions for tasks and user interfaces. */
const ownCapabilities: Shape = {
  elicitation: { form: { applyDefaults: isFlag }, url: {} },
  sampling: { tools: {}, context: {} },
  roots: { listChanged: isFlag },
  extensions: {
    [tasksExtension]: {},
    [`${protocolPrefix}ui`]: {
      mimeTypes: (value) => Array.isArray(value) && value.length === 1 && value[0] === appType,
    },
  },
}

function split(declared: JsonObject, shape: Shape): { plain: JsonObject; beyond: JsonObject } {
  const plain: [string, JsonValue][] = []
  const beyond: [string, JsonValue][] = []
  for (const [key, value] of Object.entries(declared)) {
    const form = Object.hasOwn(shape, key) ? shape[key] : undefined
    if (typeof form === 'object' && isObject(value)) {
      const inner = split(value, form)
      plain.push([key, inner.plain])
      if (Object.keys(inner.beyond).length > 0) beyond.push([key, inner.beyond])
    } else if (typeof form === 'function' && form(value)) plain.push([key, value])
    else beyond.push([key, value])
  }
  return { plain: Object.fromEntries(plain), beyond: Object.fromEntries(beyond) }
}
