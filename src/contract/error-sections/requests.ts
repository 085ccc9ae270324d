import type { ErrorSections } from './section.ts'

export const requests = {
  'arguments-invalid': {
    meaning:
      'The arguments of a tool, prompt or resource are missing or have the wrong form. The gateway reports this for its own tools, for MCP requests without a name, and for `--arg` and `--args` on the command line.',
    example: '--args must be one JSON object, such as {"name":"value"}',
    steps: [
      'Run `sallyport tools show NAME`. It prints the arguments of the tool and an example call that you can copy.',
      'On the command line write `--arg NAME=VALUE` for text and `--arg NAME:=JSON` for any other value.',
    ],
    guide: 'command-line.md#tools-and-calls',
  },
  'request-invalid': {
    meaning:
      'A field, header, option or value of the request is missing or wrong. The message names the field and the reason. Nothing was changed.',
    example: 'expiresAt must be a time in the future, such as 2030-01-31T12:00:00Z',
    steps: [
      'Correct the field that the message names, then send the request again.',
      'For a command, add `--help` to see its options and examples.',
      'For REST, compare the request with `/api/openapi.json`, and send `Content-Type: application/json`.',
    ],
    guide: 'command-line.md',
  },
  'json-inexact': {
    meaning:
      'The request contains JSON that two programs could read differently: a key that occurs twice, text that is not valid Unicode, or a number that a 64-bit float cannot represent exactly. The gateway refuses it because rules and approvals must apply to exactly what the server receives.',
    steps: ['Use each key of an object once.', 'Send large numbers, such as ids above 9007199254740991, as text.'],
    guide: 'rules.md#conditions-on-arguments',
  },
  'request-too-large': {
    meaning:
      'The body of the request is larger than allowed. At `/mcp` the limit is `limits.request` (8 MiB by default), at `/api` it is 1 MiB, and for signing in it is 16 KiB.',
    example: 'The body is larger than 8388608 bytes',
    steps: [
      'Send less data, for example a path or an address instead of the content of a file.',
      'If agents must send more at `/mcp`, raise `limits.request` in the configuration.',
    ],
    guide: 'rules.md#limits',
  },
  'method-not-found': {
    meaning:
      'The MCP method does not exist, or the server does not support it. A subscription to a resource also fails with this error if the server does not report changes, or if the client cannot receive them.',
    example: 'logging/unknown is not offered here',
    steps: [
      'Check the name of the method against the protocol revision that the client uses.',
      'For subscriptions, check that the server declares `resources.subscribe`: `sallyport servers get NAME` shows what it offers.',
    ],
    guide: 'servers.md#resources-and-prompts',
    numbers: ['http', 'rpc'],
  },
  'not-found': {
    meaning:
      'No user, agent, project, session or token has this name or id, or nothing exists at this REST address. Things that you are not allowed to see are reported in the same way.',
    example: 'No agent is named reviewer',
    steps: [
      'Run the `list` command of the same kind, such as `sallyport agents list`, and compare the names.',
      'For a REST address, see the paths in `/api/openapi.json`.',
      'If another user owns it, sign in as that user or as an administrator with `--as NAME`.',
    ],
    guide: 'people.md',
  },
  'header-mismatch': {
    meaning:
      'An MCP header, such as `Mcp-Method` or `Mcp-Name`, is missing or differs from the body of the request. The gateway compares them because a proxy may decide by the header and the gateway by the body.',
    example: "The header Mcp-Name is missing or differs from the request's body",
    steps: [
      'Update the agent. Its MCP client must copy these values from the body into the headers.',
      'If a proxy is in front of the gateway, check that it does not remove or change headers that begin with `Mcp-`.',
    ],
    guide: 'agents.md#when-it-does-not-work',
    numbers: ['http', 'rpc'],
  },
  'protocol-unsupported': {
    meaning:
      'The client asked for an MCP protocol revision that the gateway does not support. The answer lists the supported revisions under `supported`.',
    example: 'This protocol revision is not supported',
    steps: [
      'Configure the client to use one of the listed revisions, or update it.',
      'If the client is newer than the gateway, upgrade Sallyport.',
    ],
    guide: 'upgrading.md',
    numbers: ['http', 'rpc'],
  },
  'session-not-found': {
    meaning:
      'The MCP session in the header `Mcp-Session-Id` does not exist. It ended, the gateway was restarted, or it belongs to another token.',
    example: 'This MCP session does not exist or has ended',
    steps: [
      'Send `initialize` to open a new session. Most agents do this automatically.',
      'If your agent opens no new session, restart the agent.',
    ],
    guide: 'agents.md#when-it-does-not-work',
    numbers: ['http', 'rpc'],
  },
  'limit-exceeded': {
    meaning:
      'A limit is reached: calls per minute, calls at the same time, waiting approvals, unread answers, changes per minute, sign-in attempts or open sessions. A server that answers 429 or 503 is reported in the same way. The message says which limit it is.',
    example: 'agent:nightly had 600 calls within a minute, which is the limit; try again in 12 s',
    steps: [
      'Wait for the seconds in the header `Retry-After`, then repeat the request. MCP results have them in `_meta` as `retryAfter`.',
      'If the limit is too low for an agent, raise `limits.callsPerMinute` or `limits.concurrent`, for all agents or for that agent.',
      'If too many approvals wait, answer some of them: `sallyport approvals list --state waiting`.',
    ],
    guide: 'rules.md#limits',
  },
  'host-not-allowed': {
    meaning:
      'The request was sent to a host name that the gateway does not accept. Unknown names are refused so that a web page cannot reach the gateway through a name of its own (DNS rebinding).',
    example: 'This gateway does not answer to the host gate.example.com, only to 127.0.0.1:4777',
    steps: [
      'Set `listen.publicUrl` to the address that people and agents use, or add the host to `listen.allowedHosts`.',
      'Restart the gateway: `listen` takes effect at the start.',
      'Behind a reverse proxy, pass the original `Host` header on.',
    ],
    guide: 'running.md#addresses-tls-and-proxies',
  },
  'origin-not-allowed': {
    meaning:
      'A web page of another origin sent the request, or a change by a signed-in browser did not come from a page of this gateway. Such requests are refused to protect signed-in users.',
    example: 'A change by a signed-in browser must come from a page of this gateway',
    steps: [
      'Open the dashboard at the address of the gateway, and use the same name for every request.',
      'If people use another name than the gateway knows, set `listen.publicUrl`.',
      'In a script, use a token instead of a cookie, or send `Content-Type: application/json`.',
    ],
    guide: 'running.md#addresses-tls-and-proxies',
    numbers: ['http', 'rpc'],
  },
  'shutting-down': {
    meaning:
      'The gateway is stopping and accepts no new requests. A call that was running when the time in `limits.grace` was over also ends with this error.',
    example: 'The gateway is stopping and takes no new calls',
    steps: [
      'Repeat the request when the gateway runs again. `/readyz` answers 200 then.',
      'If the gateway should not stop, look in its log for the signal or the command that stopped it.',
    ],
    guide: 'running.md#signals',
  },
  unreachable: {
    meaning:
      'No gateway answers at the address that the command uses. It does not run, listens elsewhere, or the network between is down.',
    example: 'No gateway runs with the data folder /srv/shop/.sallyport',
    steps: [
      'Start a gateway: `sallyport serve`.',
      'Choose another running gateway with `--data FOLDER`, or with `--gateway URL` and `--token TOKEN`.',
      'Run `sallyport doctor` to check the port, the configuration and the data folder.',
    ],
    guide: 'command-line.md#which-gateway',
    numbers: ['rpc', 'exit'],
  },
  internal: {
    meaning:
      'Something failed that Sallyport did not expect. This is a defect. The answer contains no details, because they could include data of others.',
    example: 'Internal error of the gateway',
    steps: [
      'Look in the log of the gateway: the cause is there, at the time of the request.',
      'For a command, run it again with `SALLYPORT_LOG=debug` to see the stack trace.',
      'Report the defect with the output of `sallyport status` and the lines from the log. Remove secrets first.',
    ],
    guide: 'running.md#health',
  },
} as const satisfies ErrorSections
