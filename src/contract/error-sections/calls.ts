import type { ErrorSections } from './section.ts'

export const calls = {
  'call-denied': {
    meaning: 'A rule denies the call. Nothing was sent. The message names the rule and its reason.',
    example: 'github_delete_repo was denied: Deletions are done by hand',
    steps: [
      'Run `sallyport rules test TOOL --agent NAME` to see which rule decides and why.',
      'If the call should be allowed, change the rule, or add an exception below it.',
      'A grant or an approval cannot allow what a rule denies.',
    ],
    guide: 'rules.md#testing-rules',
  },
  'call-timeout': {
    meaning:
      'The server did not answer in time. This code is used for calls that only read, and for connecting. A call that can change something ends with `call-unknown` instead.',
    steps: [
      'Repeat the call.',
      'If the server needs longer, raise `timeout.call` of the server. A call may last `timeout.maximum` in all.',
      'If connecting takes too long, raise `timeout.connect`, or `timeout.start` for programs that download first.',
    ],
    guide: 'servers.md#time-limits',
  },
  'call-cancelled': {
    meaning:
      'The caller cancelled the call or closed the connection before it ended. An MCP client that cancels gets no answer; the code is then only in the record.',
    example: 'The caller stopped waiting for the approval',
    steps: [
      'If you did not cancel it, check the time limit of the agent: it may be shorter than the call.',
      'Repeat the call. With an `Idempotency-Key` a call continues when its caller disconnects.',
    ],
    guide: 'results.md#idempotency-keys',
  },
  'call-unknown': {
    meaning:
      'The call was sent to the server, and no usable answer came back. Nobody knows whether it took effect. The gateway does not send it again. REST answers 409 if an earlier call with the same key ended like this.',
    example: 'The program ended with code 1; whether the call took effect is not known',
    steps: [
      'Check in the system behind the server whether the change was made.',
      'Repeat the call only if it was not made. Use a new `Idempotency-Key` if you used one.',
      'Run `sallyport audit show CALL` to see when it was sent and how it ended.',
    ],
    guide: 'servers.md#time-limits',
  },
  'call-not-found': {
    meaning:
      'No call has this id, or you are not allowed to see it. If `audit.retention` is set, older calls are deleted.',
    example: 'No call has the id call_1m7pabb',
    steps: ['Run `sallyport calls list` to see the calls with their ids.'],
    guide: 'record.md#reading-the-record',
    numbers: ['http', 'exit'],
  },
  'result-not-found': {
    meaning:
      'No result with this handle belongs to the caller. The rest of a cut result is deleted 10 minutes after its last use (`limits.kept`), or earlier if there are too many.',
    example: 'None of your stored results has this handle; it may have expired',
    steps: [
      'Call the tool again, and read the rest at once.',
      'Use the token that made the call: a handle works for one principal only.',
      'To keep results longer, raise `limits.kept`.',
    ],
    guide: 'results.md#reading-the-rest',
  },
  'result-too-large': {
    meaning:
      'The answer of the server is larger than allowed. One message may have `limits.message` bytes, and structured content 16 times `limits.result` characters. A call that changes something ends with `call-unknown` if its answer is larger than one message.',
    example: 'The answer has more than 16777216 bytes',
    steps: [
      'Ask the tool for less, for example with a filter or in pages.',
      'If the server must send more, raise `limits.message`, or `limits.result` for structured content.',
    ],
    guide: 'results.md#limits',
  },
  'idempotency-conflict': {
    meaning:
      'The idempotency key was used before for another tool, or with other arguments or other `_meta`. Nothing ran.',
    example: 'This idempotency key was used for another tool, or with other arguments or `_meta`',
    steps: ['Use a new key for every new call.', 'Use the same key only to repeat exactly the same call.'],
    guide: 'results.md#idempotency-keys',
    numbers: ['http', 'exit'],
  },
  'idempotency-busy': {
    meaning:
      'The first call with this idempotency key is still running. The gateway waited 30 seconds for it. The call does not run a second time.',
    example: 'The first call with this idempotency key is still running',
    steps: [
      'Wait for the seconds in the header `Retry-After`, then send the same call with the same key.',
      'Run `sallyport calls list --state running` to see the first call.',
    ],
    guide: 'results.md#idempotency-keys',
    numbers: ['http', 'exit'],
  },
  'question-refused': {
    meaning:
      'The server asked the caller something during the call, and the client did not answer. Over REST and on the command line nobody can be asked.',
    steps: [
      'Make the call in an agent that can show questions of a server, and answer the question.',
      'If the tool has arguments for this information, give them in the call.',
    ],
    guide: 'servers.md#questions-from-servers',
  },
  'capability-missing': {
    meaning:
      'The server needs a capability that the client did not declare, such as answering questions (`elicitation`) or tasks. The answer lists it under `requiredCapabilities`.',
    example: 'The server needs to ask something for which this client did not declare the capability: elicitation',
    steps: [
      'Use an agent that supports this capability, or turn it on in the agent.',
      'On the command line and over REST no questions can be answered: call the tool from an agent.',
    ],
    guide: 'servers.md#questions-from-servers',
  },
  'state-invalid': {
    meaning:
      'The `requestState` of the MCP request is not valid: it was used before, has expired, or belongs to another client or another request.',
    example: 'This state is not valid, or no longer, or not for this request',
    steps: [
      'Send the request again without `requestState` and `inputResponses`.',
      'Update the agent if this repeats: it must return each state once, unchanged, with the same request.',
    ],
    guide: 'servers.md#questions-from-servers',
    numbers: ['http', 'rpc'],
  },
} as const satisfies ErrorSections
