export type ErrorEntry = {
  /** HTTP status on REST. */
  readonly http: number
  /** JSON-RPC code on MCP. */
  readonly rpc: number
  /** Exit code of the CLI. */
  readonly exit: number
  /** What to do, in one or two sentences. */
  readonly hint: string
}

/** Every error that crosses a folder has one of these codes. Its section in the docs is in `error-sections`. */
export const errorTable = {
  'arguments-invalid': {
    http: 400,
    rpc: -32602,
    exit: 2,
    hint: 'Correct the arguments that the message names. `sallyport tools show NAME` lists the arguments of a tool.',
  },
  'request-invalid': {
    http: 400,
    rpc: -32600,
    exit: 2,
    hint: 'Correct the field or option that the message names, then send the request again.',
  },
  'json-inexact': {
    http: 400,
    rpc: -32602,
    exit: 2,
    hint: 'Use each key once, valid Unicode text, and numbers that a 64-bit float represents exactly. Send other numbers as text.',
  },
  'request-too-large': {
    http: 413,
    rpc: -32600,
    exit: 2,
    hint: 'Send less data in one request. For `/mcp` you can raise `limits.request`.',
  },
  'method-not-found': {
    http: 404,
    rpc: -32601,
    exit: 1,
    hint: 'Use a method that the gateway, the server and the protocol revision of the client support.',
  },
  'not-found': {
    http: 404,
    rpc: -32601,
    exit: 1,
    hint: 'Check the name or the id. The `list` command for the same kind shows what exists, and `/api/openapi.json` lists the REST addresses.',
  },
  'header-mismatch': {
    http: 400,
    rpc: -32020,
    exit: 1,
    hint: 'Send MCP headers with the same values as the request body.',
  },
  'protocol-unsupported': {
    http: 400,
    rpc: -32022,
    exit: 1,
    hint: 'Use one of the protocol revisions that the answer lists under `supported`.',
  },
  'session-not-found': {
    http: 404,
    rpc: -32001,
    exit: 1,
    hint: 'Open a new MCP session with `initialize`. Most agents do this after a restart.',
  },
  'token-missing': {
    http: 401,
    rpc: -32001,
    exit: 3,
    hint: 'Send the header `Authorization: Bearer TOKEN`. `sallyport tokens create --agent NAME` creates a token.',
  },
  'token-invalid': {
    http: 401,
    rpc: -32001,
    exit: 3,
    hint: 'Create a new token with `sallyport tokens create --agent NAME` and use it instead.',
  },
  'sign-in-failed': {
    http: 401,
    rpc: -32001,
    exit: 3,
    hint: 'Check the name and the password. An administrator can set a new password with `sallyport users password NAME`.',
  },
  'sign-in-needed': { http: 401, rpc: -32001, exit: 3, hint: 'Sign in again.' },
  'person-needed': {
    http: 403,
    rpc: -32003,
    exit: 3,
    hint: 'Sign in as a user, in the browser or with `--as NAME` on the command line.',
  },
  'name-taken': { http: 409, rpc: -32602, exit: 1, hint: 'Choose another name.' },
  'last-administrator': { http: 409, rpc: -32602, exit: 1, hint: 'Give another user the role administrator first.' },
  forbidden: {
    http: 403,
    rpc: -32003,
    exit: 3,
    hint: 'Ask an administrator, or use a user or a token that is allowed to do this.',
  },
  'host-not-allowed': {
    http: 403,
    rpc: -32003,
    exit: 1,
    hint: 'Add the host to `listen.allowedHosts`, or set `listen.publicUrl`, then restart the gateway.',
  },
  'origin-not-allowed': {
    http: 403,
    rpc: -32003,
    exit: 1,
    hint: "Open the page at the gateway's own address. Web pages of other origins are not allowed to call the gateway.",
  },
  'config-invalid': {
    http: 400,
    rpc: -32602,
    exit: 2,
    hint: 'Correct the setting that the message names, then run `sallyport config check`.',
  },
  'config-unreadable': {
    http: 500,
    rpc: -32603,
    exit: 2,
    hint: 'Check that the file exists and that the user of the gateway can read and write it.',
  },
  'config-conflict': {
    http: 409,
    rpc: -32602,
    exit: 1,
    hint: 'Load the current version, make your change again and save it.',
  },
  'server-exists': {
    http: 409,
    rpc: -32602,
    exit: 1,
    hint: 'Choose another name, or remove the existing server with `sallyport servers remove NAME`.',
  },
  'server-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the servers with `sallyport servers list`.' },
  'server-unavailable': {
    http: 503,
    rpc: -32004,
    exit: 4,
    hint: 'Run `sallyport servers get NAME` to see the last error, then `sallyport servers reconnect NAME` to connect now.',
  },
  'server-broken': {
    http: 502,
    rpc: -32005,
    exit: 4,
    hint: 'Run `sallyport servers logs NAME` to see what the server wrote.',
  },
  'server-failed': {
    http: 502,
    rpc: -32005,
    exit: 4,
    hint: 'Look for the cause in the log of the server. The gateway retries the connection.',
  },
  'server-refused': {
    http: 502,
    rpc: -32006,
    exit: 5,
    hint: 'Read the message: it is the error that the server returned.',
  },
  'connect-failed': {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Check the address of the server, then test it with `sallyport servers validate NAME`.',
  },
  'server-auth': {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Correct the credentials in `headers` of the server, then run `sallyport servers reconnect NAME`.',
  },
  'spawn-failed': {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Check that the command exists and starts. `sallyport servers logs NAME` shows what it wrote.',
  },
  'session-lost': {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Repeat the call. The gateway opens a new session with the server.',
  },
  'egress-denied': {
    http: 403,
    rpc: -32004,
    exit: 4,
    hint: 'Ask an administrator to add the address to `egress.allow`.',
  },
  'values-missing': {
    http: 400,
    rpc: -32602,
    exit: 2,
    hint: 'Give the values that the message names. `sallyport gallery show ID` says where to get them.',
  },
  'variable-missing': {
    http: 400,
    rpc: -32602,
    exit: 1,
    hint: 'Store the value with `sallyport secrets set NAME`, or set the variable and list it under `environment`.',
  },
  'secret-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the secrets with `sallyport secrets list`.' },
  'key-invalid': {
    http: 500,
    rpc: -32603,
    exit: 2,
    hint: 'Correct `SALLYPORT_KEY` or the key file. A new key cannot decrypt secrets that were encrypted with another key.',
  },
  'key-wrong': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Start the gateway with the key that encrypted this data, in `SALLYPORT_KEY` or in the key file.',
  },
  'tool-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the tools again, because the list may have changed.',
  },
  'prompt-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the prompts again, because the list may have changed.',
  },
  'resource-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the resources again, because the list may have changed.',
  },
  'task-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'Start the work again. A task exists only for the principal that started it and until the gateway stops.',
  },
  'toolset-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'Check `toolsets` in the configuration with `sallyport config show`.',
  },
  'pin-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the pins with `sallyport tools pins`.' },
  'pin-changed': {
    http: 409,
    rpc: -32602,
    exit: 1,
    hint: 'Look at the new difference with `sallyport tools diff NAME`, then decide again.',
  },
  'permission-spent': {
    http: 409,
    rpc: -32007,
    exit: 6,
    hint: 'Nothing was sent. Repeat the call to ask for a new approval.',
  },
  'approval-waiting': {
    http: 202,
    rpc: -32007,
    exit: 7,
    hint: 'Nothing was sent yet. Repeat the same call: it runs as soon as a person approves it.',
  },
  'approval-denied': {
    http: 403,
    rpc: -32003,
    exit: 6,
    hint: 'Nothing was sent. Read the reason and do something else; do not repeat the call unchanged.',
  },
  'approval-expired': {
    http: 403,
    rpc: -32007,
    exit: 6,
    hint: 'Nothing was sent. Repeat the call to ask for a new approval.',
  },
  'approval-withdrawn': {
    http: 409,
    rpc: -32007,
    exit: 6,
    hint: 'Nothing was sent. Repeat the call to ask for a new approval.',
  },
  'approval-answered': {
    http: 409,
    rpc: -32602,
    exit: 1,
    hint: 'Look at the answer with `sallyport approvals show ID`.',
  },
  'approval-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the waiting approvals with `sallyport approvals list --state waiting`.',
  },
  'approval-changed': {
    http: 409,
    rpc: -32602,
    exit: 1,
    hint: 'Look at the approval again with `sallyport approvals show ID`, then answer it.',
  },
  'approval-forbidden': {
    http: 403,
    rpc: -32003,
    exit: 6,
    hint: 'Ask a person who is allowed to answer. `sallyport approvals show ID` lists who is.',
  },
  'grant-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the grants with `sallyport grants list`.' },
  'grant-invalid': {
    http: 400,
    rpc: -32602,
    exit: 1,
    hint: 'Give the grant a principal or a scope, an end in the future, and the exact name of a tool of risk `danger`.',
  },
  'webhook-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the webhooks with `sallyport webhooks list`.' },
  'delivery-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'List the deliveries with `sallyport webhooks deliveries`. Old deliveries are deleted.',
  },
  'call-denied': {
    http: 403,
    rpc: -32003,
    exit: 6,
    hint: 'Run `sallyport rules test TOOL` to see which rule denies the call, or do something else.',
  },
  'call-timeout': {
    http: 504,
    rpc: -32009,
    exit: 5,
    hint: 'Repeat the call. If the server needs longer, raise `timeout.call` of the server.',
  },
  'call-cancelled': { http: 499, rpc: -32010, exit: 1, hint: 'Make the call again if you still need its result.' },
  'call-unknown': {
    http: 502,
    rpc: -32011,
    exit: 5,
    hint: 'Check whether the call took effect before you repeat it: it was sent and got no answer.',
  },
  'call-not-found': { http: 404, rpc: -32602, exit: 1, hint: 'List the calls with `sallyport calls list`.' },
  'result-not-found': {
    http: 404,
    rpc: -32602,
    exit: 1,
    hint: 'Call the tool again. The rest of a result is deleted some time after its last use.',
  },
  'idempotency-conflict': {
    http: 422,
    rpc: -32602,
    exit: 2,
    hint: 'Use a new key for a call with another tool or other arguments.',
  },
  'idempotency-busy': {
    http: 409,
    rpc: -32012,
    exit: 1,
    hint: 'Wait for the seconds in `Retry-After`, then repeat the call to get the result of the first call.',
  },
  'limit-exceeded': {
    http: 429,
    rpc: -32012,
    exit: 1,
    hint: 'Wait for the seconds in `Retry-After`, then repeat the request.',
  },
  'question-refused': {
    http: 400,
    rpc: -32015,
    exit: 5,
    hint: 'Use a client that shows the questions of a server to a person, and answer the question.',
  },
  'capability-missing': {
    http: 400,
    rpc: -32021,
    exit: 5,
    hint: 'Use a client that has the capabilities that the answer lists under `requiredCapabilities`.',
  },
  'state-invalid': {
    http: 400,
    rpc: -32602,
    exit: 1,
    hint: 'Send the request again without `requestState`. A state is valid once, for the client that received it.',
  },
  'result-too-large': {
    http: 502,
    rpc: -32013,
    exit: 5,
    hint: 'Ask the tool for less data, or raise `limits.message` or `limits.result`.',
  },
  'storage-unavailable': {
    http: 503,
    rpc: -32014,
    exit: 1,
    hint: 'Check the disk space and the data folder, or the PostgreSQL server. Calls that cannot be recorded are not sent.',
  },
  'clock-wrong': {
    http: 503,
    rpc: -32014,
    exit: 1,
    hint: "Set the clock of the gateway's machine, for example with NTP. The gateway continues as soon as the clock is right.",
  },
  'storage-newer': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Start the version of Sallyport that wrote this data, or a newer one.',
  },
  'audit-key-wrong': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Give all gateways on this database the same `SALLYPORT_KEY`, or copy `audit-key` from the data folder of another gateway.',
  },
  'data-not-empty': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Restore into an empty folder with `--data FOLDER`, or into an empty database.',
  },
  'backup-invalid': { http: 400, rpc: -32602, exit: 1, hint: 'Use another copy of the backup. Nothing was restored.' },
  'backup-failed': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Correct what the message names, then run the backup again.',
  },
  'compact-failed': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Correct what the message names, then run `sallyport data compact` again.',
  },
  'data-unsafe': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Run the command in the message. Until then other users of this machine could change your tokens and keys.',
  },
  'data-untrusted': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Use `--data FOLDER` only if the folder is yours. A folder from someone else can send your secrets to that person.',
  },
  'data-locked': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Stop the other gateway, or use another data folder with `--data FOLDER`.',
  },
  'port-taken': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Stop the other program, or choose another port with `--port`.',
  },
  'shutting-down': {
    http: 503,
    rpc: -32014,
    exit: 4,
    hint: 'Try again in a few seconds, when the gateway runs again.',
  },
  unreachable: {
    http: 502,
    rpc: -32004,
    exit: 4,
    hint: 'Start a gateway with `sallyport serve`, or choose a running one with `--data FOLDER` or `--gateway URL`.',
  },
  'file-failed': {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Correct what the message names, such as disk space or file permissions, then repeat the command.',
  },
  internal: {
    http: 500,
    rpc: -32603,
    exit: 1,
    hint: 'Report this as a defect of Sallyport. The log of the gateway has the details.',
  },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorTable

/** Whether this gateway knows a code that came from elsewhere. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(errorTable, code)
}
