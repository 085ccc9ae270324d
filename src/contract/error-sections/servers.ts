import type { ErrorSections } from './section.ts'

export const servers = {
  'server-exists': {
    meaning: 'A server with this name already exists in this scope.',
    example: 'A server named files exists in global',
    steps: [
      'Choose another name.',
      'To change the existing server, run `sallyport servers edit NAME`.',
      'To replace it, run `sallyport servers remove NAME` first.',
    ],
    guide: 'servers.md',
    numbers: ['http', 'exit'],
  },
  'values-missing': {
    meaning:
      'A server of the gallery cannot be added, because required values are missing. `details.missing` lists them with their titles and with links where to get them.',
    example: 'GitHub (remote) needs values for: GITHUB_PERSONAL_ACCESS_TOKEN',
    steps: [
      'Run `sallyport gallery show ID` to see what each value is and where to get it.',
      'Store a secret with `sallyport secrets set NAME`, or run `sallyport servers add ID` at a terminal, which asks for it.',
      'Give other values with `--set NAME=VALUE`, over REST in `values`.',
    ],
    guide: 'gallery.md',
    numbers: ['http', 'exit'],
  },
  'server-not-found': {
    meaning:
      'No server has this name, or it is disabled, or it is not available to this user or agent. Servers of other scopes are reported in the same way.',
    example: 'No server is named flies; did you mean files?',
    steps: [
      'Run `sallyport servers list` to see the names.',
      'If the server is disabled, run `sallyport servers enable NAME`.',
      'If it belongs to a scope, add `--scope`, for example `--scope project:shop`.',
    ],
    guide: 'servers.md#other-scopes',
  },
  'server-unavailable': {
    meaning:
      'The server is not connected at the moment. The call was not sent, unless the gateway closed the connection while the call was running. An approval that the call had stays valid.',
    example:
      'The server files is not connected. Nothing was sent, and the approval is still valid: repeat the same call',
    steps: [
      'Repeat the call after a few seconds. The gateway reconnects automatically.',
      'Run `sallyport servers get NAME` to see the last error and what to do about it.',
      'After a repair, run `sallyport servers reconnect NAME`.',
    ],
    guide: 'servers.md#states',
  },
  'server-broken': {
    meaning:
      'The server broke the protocol or the connection: it answered with something that is not MCP, it ended, or the connection was cut. A call that changes something ends with `call-unknown` instead.',
    example: 'The program ended with code 1',
    steps: [
      'Run `sallyport servers logs NAME` to see what the program wrote before it ended.',
      'Check that the program writes only MCP messages to standard output. Logs belong on standard error.',
      'For an HTTP server, check that `url` is the address of its MCP endpoint. Many servers use `/mcp`.',
    ],
    guide: 'troubleshooting-servers.md#a-command-does-not-start',
  },
  'server-failed': {
    meaning:
      'The server answered with an HTTP status of 500 or higher, other than 503. The failure is inside the server.',
    example: 'The server answered with HTTP status 500',
    steps: [
      'Look for the cause in the log of the server, or ask its operator.',
      'Repeat the call later. The gateway retries the connection with growing pauses.',
    ],
    guide: 'troubleshooting-servers.md#a-server-on-the-network-does-not-connect',
  },
  'server-refused': {
    meaning:
      'The server answered with an error of its own. The call reached the server, and the server decided. A webhook address that answers with an error status is reported in the same way.',
    example: 'The server refused the call: path is outside the allowed folder',
    steps: [
      'Read the message of the server and correct the arguments.',
      'If the server refuses to connect or to list its tools, run `sallyport servers validate NAME` to see its answer.',
    ],
    guide: 'servers.md#validating-a-definition',
  },
  'connect-failed': {
    meaning:
      'The gateway could not connect to the address of the server. Nothing listens there, the name is unknown, the path is wrong, or the server redirects to another address.',
    example: 'No connection to the server (ECONNREFUSED)',
    steps: [
      'Check `url` of the server, and that the server runs and is reachable from the machine of the gateway.',
      'Write the final address as `url`: redirects are not followed.',
      'Run `sallyport servers validate NAME` to test the connection.',
    ],
    guide: 'troubleshooting-servers.md#a-server-on-the-network-does-not-connect',
  },
  'server-auth': {
    meaning:
      'The server answered 401 or 403: the credentials are missing, wrong or expired. The state of the server is then `auth-required`, and the gateway does not retry.',
    example: 'The server answered 401: it wants other credentials',
    steps: [
      'Store the new value: `sallyport secrets set NAME`. The server then reconnects automatically.',
      'Check `headers` of the server with `sallyport servers get NAME`. The value usually begins with `Bearer`.',
      'Run `sallyport servers reconnect NAME`.',
    ],
    guide: 'troubleshooting-servers.md#a-server-on-the-network-does-not-connect',
  },
  'spawn-failed': {
    meaning:
      'The program of a stdio server could not be started. The command does not exist in the `PATH` of the gateway, or the working folder is missing or cannot be created.',
    example: 'npx could not be started (ENOENT)',
    steps: [
      'Install the program, or write its absolute path as `command`.',
      'Check that the folder in `cwd` exists.',
      'Run `sallyport servers validate NAME`, or start the command by hand as the user of the gateway.',
    ],
    guide: 'troubleshooting-servers.md#a-command-does-not-start',
  },
  'session-lost': {
    meaning:
      'An HTTP server ended the session with the gateway. The gateway opens a new session and sends the call once more; this error appears only if that fails as well.',
    example: 'The server has forgotten the session',
    steps: [
      'Repeat the call. The server refused it before it did anything.',
      'If this happens often, ask the operator of the server how long its sessions last.',
    ],
    guide: 'servers.md#states',
  },
  'egress-denied': {
    meaning:
      'The address of the server is private, such as 10.0.0.5 or localhost, and its author is not allowed to use private addresses. An SSE server that names another origin to post to is refused in the same way.',
    example: 'The host wiki.example.com leads to the private address 10.0.0.5',
    steps: [
      'An administrator can add the host or the network to `egress.allow`.',
      'Or an administrator adds the server in a scope that only administrators write.',
    ],
    guide: 'teams.md#what-members-may-add',
  },
  'tool-not-found': {
    meaning:
      'No tool has this name for this caller. The server removed it, the server is not connected, or the settings of the agent exclude it.',
    example: 'No tool is named "files_raed_file"',
    steps: [
      'List the tools again. On the command line, run `sallyport tools list`.',
      'Run `sallyport servers list` to check that the server is connected.',
      'Check `include` and `exclude` under `tools` of the server, and the toolset of the address.',
    ],
    guide: 'servers.md#selecting-and-changing-tools',
  },
  'prompt-not-found': {
    meaning: 'No prompt has this name for this caller. The server removed it, or the server is not connected.',
    example: 'No prompt is named "review"',
    steps: ['List the prompts again.', 'Run `sallyport servers list` to check that the server is connected.'],
    guide: 'servers.md#resources-and-prompts',
    numbers: ['rpc'],
  },
  'resource-not-found': {
    meaning:
      'No resource has this address for this caller, or the address is not in its plain form. Revisions of MCP before the stateless one use the JSON-RPC code -32002 for it.',
    example: 'No resource has the address "file:///notes.txt"',
    steps: [
      'List the resources again and use an address from the list.',
      'For an address from a template, leave out `..`, doubled slashes and percent signs.',
    ],
    guide: 'servers.md#resources-and-prompts',
    numbers: ['rpc'],
  },
  'task-not-found': {
    meaning:
      'No task with this id belongs to this caller. Tasks are known only to the principal that started them, and only until the gateway stops.',
    example: 'None of your tasks has the id "42"',
    steps: ['Start the work again with a new call.', 'Use the token that started the task.'],
    guide: 'agents.md#when-it-does-not-work',
    numbers: ['rpc'],
  },
  'toolset-not-found': {
    meaning: 'The configuration has no toolset with this name. The address `/mcp/t/NAME` uses the name of a toolset.',
    example: 'No toolset is named support',
    steps: [
      'Run `sallyport config show` and compare the names under `toolsets`.',
      'Correct the address in the settings of the agent.',
    ],
    guide: 'agents.md#addresses',
    numbers: ['http', 'rpc'],
  },
  'pin-not-found': {
    meaning:
      'No pinned definition has this id or name. A pin exists for each tool, prompt or resource that the server has listed.',
    example: 'No pin is called files_read_fiel',
    steps: [
      'Run `sallyport tools pins` to see the names.',
      'Write the public name of a tool, or `SERVER/NAME` with the name that the server uses.',
    ],
    guide: 'pinning.md#reviewing-changes',
    numbers: ['http', 'exit'],
  },
  'pin-changed': {
    meaning:
      'The server changed the definition after you looked at it. Nothing was accepted or blocked, because you must see what you decide about.',
    steps: [
      'Look at the new difference: `sallyport tools diff NAME`.',
      'Then accept it with `sallyport tools accept NAME`, or block it with `sallyport tools block NAME`.',
    ],
    guide: 'pinning.md#reviewing-changes',
    numbers: ['http', 'exit'],
  },
  'server-read-only': {
    meaning:
      'This server comes from a file that the gateway only reads, such as the file of a repository. The gateway does not write such files.',
    example: 'jira of project:shop comes from /srv/shop/.mcp.json, which the gateway does not change',
    steps: [
      'Change the server in the file that the message names.',
      'Then accept the new content: `sallyport projects accept NAME`, or `sallyport config trust FILE` for `mcp-servers.json`.',
      'Or write an entry of the same name in the configuration: under `projects.NAME.servers`, or under `servers` for `mcp-servers.json`. It replaces the entry of the file.',
    ],
    guide: 'teams.md#servers-from-a-repository',
    numbers: ['http', 'exit'],
  },
  'repository-unreadable': {
    meaning:
      'The file of a repository cannot be read safely: it is missing, not valid, too large, not a regular file, or a symbolic link is on its path. Nothing was accepted.',
    example: '/srv/shop/.mcp.json is a symbolic link, which is not allowed here',
    steps: [
      'Correct what the message names. The file must be a regular file of at most 256 KiB.',
      'Check `projects.NAME.repository` in the configuration with `sallyport config show`.',
      'Look again: `sallyport projects accept NAME`.',
    ],
    guide: 'teams.md#servers-from-a-repository',
    numbers: ['http', 'exit'],
  },
  'repository-changed': {
    meaning:
      'The file of the repository, or what you may accept of it, changed after you looked at it. Nothing was accepted, because you must see what you accept.',
    steps: ['Look at the new content: `sallyport projects accept NAME`.', 'Then accept it with the new hash.'],
    guide: 'teams.md#servers-from-a-repository',
    numbers: ['http', 'exit'],
  },
} as const satisfies ErrorSections
