import { errorTable, type GatewayError, toGatewayError } from '../contract/errors.ts'
import type { FailureClass, ServerFailure } from '../contract/server.ts'
import { toIso } from '../lib/clock.ts'

const classes: Partial<Record<GatewayError['code'], FailureClass>> = {
  'server-auth': 'auth',
  'call-timeout': 'timeout',
  'connect-failed': 'unreachable',
  'server-failed': 'server',
  'egress-denied': 'config',
  'variable-missing': 'config',
  'config-invalid': 'config',
  'spawn-failed': 'spawn',
  'server-broken': 'protocol',
  'server-refused': 'protocol',
  'session-lost': 'protocol',
  'result-too-large': 'protocol',
  'limit-exceeded': 'server',
}

type Failed = {
  /** The last lines that the program wrote to standard error. */
  readonly output?: readonly string[]
  /** The name of the saved server. A server that is only tried has no name and no logs. */
  readonly server?: string
}

/** Describes why a connection failed, with the class of the failure and a hint. */
export function toFailure(error: unknown, now: number, { output = [], server }: Failed = {}): ServerFailure {
  const failure = toGatewayError(error)
  return {
    code: failure.code,
    class: classOf(failure),
    message: failure.message,
    hint: hintOf(failure, output, server),
    at: toIso(now),
    ...(output.length > 0 && { output: [...output] }),
  }
}

function classOf(failure: GatewayError): FailureClass {
  // A program that ends before it has sent a message is treated as one that could not be started.
  if (failure.code === 'server-broken' && 'exitCode' in failure.details) return 'spawn'
  const { status } = failure.details
  if (failure.code === 'connect-failed' && typeof status === 'number') return 'protocol'
  return classes[failure.code] ?? 'unknown'
}

function hintOf(failure: GatewayError, output: readonly string[], server: string | undefined): string {
  if (failure.details.check === true)
    return 'The server or the network does not respond; `sallyport servers logs NAME` may show why.'
  if (failure.code === 'spawn-failed' && 'folder' in failure.details) return errorTable['file-failed'].hint
  if (failure.details.signal === 'SIGKILL') {
    return 'Often the machine or the container ran out of memory. Check the log of the system.'
  }
  if (failure.code === 'call-timeout') return 'Raise `timeout.connect` (or `timeout.start`) if the server needs longer.'
  if (failure.code === 'connect-failed' && failure.details.errno === 'ECONNREFUSED') {
    return 'No program listens at this address: start the server, or correct `url`.'
  }
  if (failure.code === 'connect-failed')
    return 'Check `url`, and that the server is running and reachable from the gateway.'
  if (failure.code === 'server-broken' && 'exitCode' in failure.details) {
    if (output.length > 0) return `The last lines of its output are shown below${toLogs(server)}.`
    return 'The program wrote nothing to standard error. Start the command by hand to see why it ends.'
  }
  if (failure.code === 'spawn-failed' && failure.details.missing === 'folder') {
    return 'Create the folder, or correct `cwd`.'
  }
  if (failure.code === 'spawn-failed')
    return 'Check that the command exists, and that it is in the PATH of the gateway.'
  return failure.entry.hint
}

function toLogs(server: string | undefined): string {
  return server === undefined ? '' : `; \`sallyport servers logs ${server}\` shows more`
}
