import { type ErrorCode, errorTable, isErrorCode } from '../error-table.ts'
import { approvals } from './approvals.ts'
import { calls } from './calls.ts'
import { configuration } from './configuration.ts'
import { data } from './data.ts'
import { people } from './people.ts'
import { requests } from './requests.ts'
import type { ErrorSection, NumberName } from './section.ts'
import { servers } from './servers.ts'

/** The long texts about errors. Import this file only where they are shown: they cost memory at every start. */
export const errorSections: Readonly<Record<ErrorCode, ErrorSection>> = {
  ...requests,
  ...people,
  ...configuration,
  ...servers,
  ...approvals,
  ...calls,
  ...data,
}

/** The codes by subject, in the order of the page. */
export const errorGroups: readonly { readonly title: string; readonly codes: readonly ErrorCode[] }[] = [
  { title: 'Requests and the gateway', codes: codesOf(requests) },
  { title: 'Tokens and users', codes: codesOf(people) },
  { title: 'Configuration and secrets', codes: codesOf(configuration) },
  { title: 'Servers and tools', codes: codesOf(servers) },
  { title: 'Approvals and grants', codes: codesOf(approvals) },
  { title: 'Calls and results', codes: codesOf(calls) },
  { title: 'Data and backups', codes: codesOf(data) },
]

function codesOf(sections: object): ErrorCode[] {
  return Object.keys(sections).filter(isErrorCode)
}

const allNumbers: readonly NumberName[] = ['http', 'rpc', 'exit']

/** The numbers of an error that people can see. */
export function toNumbers(code: ErrorCode): Partial<Record<NumberName, number>> {
  const { numbers = allNumbers } = errorSections[code]
  return Object.fromEntries(numbers.map((name) => [name, errorTable[code][name]]))
}

/** `HTTP 403, JSON-RPC -32007, exit code 6` */
export function describeNumbers(code: ErrorCode): string {
  const { http, rpc, exit } = toNumbers(code)
  const parts = [
    http === undefined ? '' : `HTTP ${http}`,
    rpc === undefined ? '' : `JSON-RPC ${rpc}`,
    exit === undefined ? '' : `exit code ${exit}`,
  ]
  return parts.filter(Boolean).join(', ')
}

/** The first sentence of the meaning, for lists. */
export function toSummary(code: ErrorCode): string {
  const { meaning } = errorSections[code]
  return /^.*?\.(?= [A-Z`]|$)/s.exec(meaning)?.[0] ?? meaning
}
