import { findSystemCode, toSystemReason } from './system-error.ts'

export type ErrorEntry = {
  /** HTTP status on REST. */
  readonly http: number
  /** JSON-RPC code on MCP. */
  readonly rpc: number
  /** Exit code of the CLI. */
  readonly exit: number
  /** What to do about it, in one sentence. */
  readonly hint: string
}

/** Every error that crosses a folder has one of these codes; the table knows each surface's answer. */
export const errorTable = {
  'arguments-invalid': {
    http: 400,
    rpc: -32602,
    exit: 2,
    hint: "Look at the tool's arguments with `sallyport tools guide`.",
  },
  'request-invalid': { http: 400, rpc: -32600, exit: 2, hint: 'Correct the request; the message names what is wrong.' },
  'json-inexact': {
    http: 400,
    rpc: -32602,
    exit: 2,
    hint: 'Send each key once, text as valid Unicode, and numbers that a 64-bit float holds exactly. Send other numbers as text.',
  },
  'request-too-large': { http: 413, rpc: -32600, exit: 2, hint: 'Send less at once, or raise `limits.request`.' },
  'method-not-found': {
    http: 404,
    rpc: -32601,
    exit: 1,
    hint: 'This gateway or this protocol revision has no such method.',
  },
  'not-found': {
    http: 404,
    rpc: -32601,
    exit: 1,
    hint: 'Check the name or id; the command `list` of the same kind shows what exists, `/api/openapi.json` the addresses.',
  },
  'header-mismatch': {
    http: 400,
    rpc: -32020,
    exit: 1,
    hint: 'The MCP headers must say the same as the request body.',
  },
  'protocol-unsupported': {
    http: 400,
    rpc: -32022,
    exit: 1,
    hint: 'Use one of the protocol revisions that the answer lists.',
  },
  'session-not-found': { http: 404, rpc: -32001, exit: 1, hint: 'Start a new session with `initialize`.' },
  'token-missing': {
    http: 401,
    rpc: -32001,
    exit: 3,
    hint: 'Send `Authorization: Bearer TOKEN`; `sallyport tokens create --agent NAME` makes one.',
  },
  'token-invalid': {
    http: 401,
    rpc: -32001,
    exit: 3,
    hint: 'Make a new token with `sallyport tokens create --agent NAME`.',
  },
  'sign-in-failed': {
    http: 401,
    rpc: -32001,
    exit: 3,
    hint: 'Check the name and the password; an administrator can set a new one with `sallyport users password`.',
  },
  'sign-in-needed': { http: 401, rpc: -32001, exit: 3, hint: 'Sign in again.' },
  'person-needed': {
    http: 403,
    rpc: -32003,
    exit: 3,
    hint: 'Sign in as a person: in the browser, or with `--as NAME` at the terminal.',
  },
  'name-taken': { http: 409, rpc: -32602, exit: 1, hint: 'Choose another name.' },
  'last-administrator': { http: 409, rpc: -32602, exit: 1, hint: 'Make somebody else an administrator first.' },
  forbidden: { http: 403, rpc: -32003, exit: 3, hint: 'Ask an administrator, or use a token that may do this.' },
  'host-not-allowed': {
    http: 403,
    rpc: -32003,
    exit: 1,
    hint: 'Add the host to `listen.allowedHosts`, or set `listen.publicUrl`.',
  },
  'origin-not-allowed': {
    http: 403,
    rpc: -32003,
    exit: 1,
    hint: 'Web pages of other origins may not call this gateway.',
  },
  'config-invalid': { http: 400, rpc: -32602, exit: 2, hint: 'Run `sallyport config check` after correcting it.' },
  'config-unreadable': { http: 500, rpc: -32603, exit: 2, hint: 'Check that the file exists and may be read.' },
  'config-conflict': { http: 409, rpc: -32602, exit: 1, hint: 'The file changed meanwhile: look again, then repeat.' },
  'server-exists': { http: 409, rpc: -32602, exit: 1, hint: 'Choose another name, or remove the server first.' },
  'server-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the servers with `sallyport servers list`.' },
  'server-unavailable': {
    http: 503,
    rpc: -32004,
    exit: 4,
    hint: 'See `sallyport servers get NAME` for its last error; `servers reconnect NAME` tries again now.',
  },
  'server-broken': {
    http: 502,
    rpc: -32005,
    exit: 4,
    hint: 'The server misbehaved; see `sallyport servers logs NAME`.',
  },
  'server-failed': {
    http: 502,
    rpc: -32005,
    exit: 4,
    hint: 'The server itself failed: its own log says why. It is tried again.',
  },
  'server-refused': { http: 502, rpc: -32006, exit: 5, hint: "This is the server's own error; its message says more." },
  'connect-failed': {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Try the definition with `sallyport servers validate`.',
  },
  'server-auth': {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: "The server wants credentials: put them into the server's `headers`, then reconnect it.",
  },
  'spawn-failed': {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Check that the command exists and starts by itself; `sallyport servers logs NAME` shows what it printed.',
  },
  'session-lost': { http: 502, rpc: -32004, exit: 4, hint: 'The server forgot its session; it is renewed by itself.' },
  'egress-denied': {
    http: 403,
    rpc: -32004,
    exit: 4,
    hint: 'Private addresses need an entry in `egress.allow`, or a server written by an administrator.',
  },
  'variable-missing': {
    http: 400,
    rpc: -32602,
    exit: 1,
    hint: 'Store a secret of that name with `sallyport secrets set NAME`, or set the variable and list it under `environment`.',
  },
  'secret-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the secrets with `sallyport secrets list`.' },
  'key-invalid': {
    http: 500,
    rpc: -32603,
    exit: 2,
    hint: 'Correct `SALLYPORT_KEY` or the key file; a new key cannot open what was encrypted under another.',
  },
  'key-wrong': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Start with the key that this data was encrypted under: put it back into `SALLYPORT_KEY` or the key file.',
  },
  'tool-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the tools again: the catalog may have changed.' },
  'prompt-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the prompts again: the catalog may have changed.',
  },
  'resource-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the resources again: the catalog may have changed.',
  },
  'task-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'Tasks are known to who started them, until the gateway ends; start the work again.',
  },
  'toolset-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'Look at `toolsets` in the configuration.' },
  'pin-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the pins with `sallyport tools pins`.' },
  'pin-changed': {
    http: 409,
    rpc: -32602,
    exit: 1,
    hint: 'The definition changed meanwhile: look at the difference again, then decide.',
  },
  'permission-spent': {
    http: 409,
    rpc: -32007,
    exit: 6,
    hint: 'Somebody else used it in the same moment. Nothing was sent; repeat the call to ask again.',
  },
  'approval-waiting': {
    http: 202,
    rpc: -32007,
    exit: 7,
    hint: 'Nothing was sent yet. Repeat the same call: it runs as soon as a person has approved it.',
  },
  'approval-denied': {
    http: 403,
    rpc: -32003,
    exit: 6,
    hint: 'A person said no, and nothing was sent. Mind the reason before trying anything else.',
  },
  'approval-expired': {
    http: 403,
    rpc: -32007,
    exit: 6,
    hint: 'The time of the approval is up, and nothing was sent. Repeat the call to ask again.',
  },
  'approval-withdrawn': {
    http: 409,
    rpc: -32007,
    exit: 6,
    hint: 'The approval does not count any more. Nothing was sent; repeat the call.',
  },
  'approval-answered': { http: 409, rpc: -32602, exit: 1, hint: 'Look at it with `sallyport approvals show ID`.' },
  'approval-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the questions that wait with `sallyport approvals list`.',
  },
  'approval-changed': {
    http: 409,
    rpc: -32602,
    exit: 1,
    hint: 'This is another question than the one that was looked at: look again, then decide.',
  },
  'approval-forbidden': {
    http: 403,
    rpc: -32003,
    exit: 6,
    hint: 'Ask somebody whom the rule lets answer; `sallyport approvals show ID` says who that is.',
  },
  'grant-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the grants with `sallyport grants list`.' },
  'grant-invalid': {
    http: 400,
    rpc: -32602,
    exit: 1,
    hint: 'A grant is for a principal or a scope, ends in the future, and names dangerous tools exactly.',
  },
  'webhook-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the endpoints with `sallyport webhooks list`.' },
  'delivery-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the deliveries with `sallyport webhooks deliveries`; old ones are forgotten.',
  },
  'call-denied': { http: 403, rpc: -32003, exit: 6, hint: 'A rule denies this call; `sallyport audit show` names it.' },
  'call-timeout': {
    http: 504,
    rpc: -32009,
    exit: 5,
    hint: "Nothing was changed. Raise the server's `timeout.call` if it needs longer.",
  },
  'call-cancelled': { http: 499, rpc: -32010, exit: 1, hint: 'The caller ended this call.' },
  'call-unknown': {
    http: 502,
    rpc: -32011,
    exit: 5,
    hint: 'The call was sent and got no answer: check whether it took effect before repeating it.',
  },
  'call-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the calls with `sallyport audit list`.' },
  'result-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'What is left of a result is dropped a while after its last use: call the tool again.',
  },
  'idempotency-conflict': {
    http: 422,
    rpc: -32602,
    exit: 2,
    hint: 'A key belongs to one tool with one set of arguments: send another call with another key.',
  },
  'idempotency-busy': {
    http: 409,
    rpc: -32012,
    exit: 1,
    hint: 'The first call with this key is still running: repeat after the time in Retry-After to get its result.',
  },
  'limit-exceeded': { http: 429, rpc: -32012, exit: 1, hint: 'Wait for the time in Retry-After, then repeat.' },
  'question-refused': {
    http: 400,
    rpc: -32015,
    exit: 5,
    hint: 'The server asks something in the middle of this call: use a client that can put questions to a person.',
  },
  'capability-missing': {
    http: 400,
    rpc: -32021,
    exit: 5,
    hint: 'Declare the capabilities that the answer lists, or use a client that has them.',
  },
  'state-invalid': {
    http: 400,
    rpc: -32602,
    exit: 1,
    hint: 'Send the request again without `requestState`; each state can be used once, by whom it was given to.',
  },
  'result-too-large': { http: 502, rpc: -32013, exit: 5, hint: 'Ask the tool for less, or raise `limits.message`.' },
  'storage-unavailable': {
    http: 503,
    rpc: -32014,
    exit: 1,
    hint: 'Nothing was sent, because it could not be recorded. Check disk space and the data folder.',
  },
  'clock-wrong': {
    http: 503,
    rpc: -32014,
    exit: 1,
    hint: "Set the clock of the gateway's machine, for example with NTP; the gateway continues when it is right.",
  },
  'storage-newer': { http: 500, rpc: -32603, exit: 1, hint: 'Start the version of Sallyport that wrote this data.' },
  'audit-key-wrong': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Give all gateways on this database the same SALLYPORT_KEY, or copy `audit-key` from the data folder of another.',
  },
  'data-not-empty': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'A backup is restored only where nothing is: give another folder with --data, or an empty database.',
  },
  'backup-invalid': { http: 400, rpc: -32602, exit: 1, hint: 'Take another copy of the backup; nothing was restored.' },
  'backup-failed': { http: 500, rpc: -32603, exit: 1, hint: 'Correct what the message names, then repeat it.' },
  'compact-failed': { http: 500, rpc: -32603, exit: 1, hint: 'Correct what the message names, then repeat it.' },
  'data-unsafe': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Other users of this machine could change tokens and keys. Run the command that the message names.',
  },
  'data-untrusted': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Use --data only for a folder that you know; a folder from elsewhere can send your secrets to a stranger.',
  },
  'data-locked': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Stop the other gateway, or give this one its own folder with --data.',
  },
  'port-taken': { http: 500, rpc: -32603, exit: 1, hint: 'Stop the other program, or choose another with --port.' },
  'shutting-down': { http: 503, rpc: -32014, exit: 4, hint: 'The gateway is stopping; try again shortly.' },
  unreachable: {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Start a gateway with `sallyport serve`, or name one that runs with --data FOLDER or --gateway URL.',
  },
  'file-failed': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Correct what the message names, such as disk space or permissions, then repeat it.',
  },
  internal: { http: 500, rpc: -32603, exit: 1, hint: 'This is a defect of Sallyport; the log has the details.' },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorTable

/** Whether this gateway knows a code that came from elsewhere. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(errorTable, code)
}

/**
 * How far a request to a server came that ended in an error. `unsent`: the server saw nothing of it. `refused`: the server
 * refused it before doing anything. `sent`: the server may have carried it out.
 */
export type Reach = 'unsent' | 'refused' | 'sent'

export type GatewayErrorOptions = ErrorOptions & { readonly reach?: Reach | undefined }

export class GatewayError extends Error {
  readonly code: ErrorCode
  /** Facts for programs; never a secret, never a server's raw text. */
  readonly details: Readonly<Record<string, unknown>>
  /** Undefined for an error that is not about a request to a server. */
  readonly reach: Reach | undefined

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}, options?: GatewayErrorOptions) {
    super(message, options)
    this.name = 'GatewayError'
    this.code = code
    this.details = details
    this.reach = options?.reach
  }

  /** The same error with how far its request came. */
  withReach(reach: Reach): GatewayError {
    return new GatewayError(this.code, this.message, this.details, { cause: this, reach })
  }

  get entry(): ErrorEntry {
    return errorTable[this.code]
  }
}

/** An error as it was recorded, by its code. */
export function recall(code: string, message: string): GatewayError {
  return new GatewayError(isErrorCode(code) ? code : 'internal', message)
}

export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (findSystemCode(error) !== undefined) return toFileFailure(error)
  const message = error instanceof Error ? error.message : String(error)
  return new GatewayError('internal', message, {}, { cause: error })
}

/** A full disk, a read-only folder or a missing permission: not a defect of Sallyport. The message has the path, for operators. */
function toFileFailure(error: unknown): GatewayError {
  const reason = toSystemReason(error)
  const path = error instanceof Error && 'path' in error ? String(error.path) : undefined
  const message = path === undefined ? `A file cannot be used: ${reason}` : `${path} cannot be used: ${reason}`
  return new GatewayError('file-failed', message, { reason }, { cause: error })
}

/** The error as callers may see it: without the message of a defect and without file paths, which are in the log only. */
export function withoutOwn(error: GatewayError): GatewayError {
  if (error.code === 'internal') return new GatewayError('internal', 'Something went wrong inside the gateway')
  if (error.code !== 'file-failed') return error
  const { reason } = error.details
  return new GatewayError(
    'file-failed',
    `The gateway cannot use one of its files: ${reason}; its log names the file`,
    error.details,
  )
}

/** The body of every REST error and of the CLI's `--json` failures. */
export function toErrorBody(error: GatewayError): { error: { code: ErrorCode; message: string; hint: string } } {
  return { error: { code: error.code, message: error.message, hint: error.entry.hint, ...extra(error) } }
}

function extra(error: GatewayError): { details?: Readonly<Record<string, unknown>> } {
  return Object.keys(error.details).length > 0 ? { details: error.details } : {}
}
