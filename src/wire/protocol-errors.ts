import { type Answer, memberText } from './answer.ts'

/** A server of the older era requires that the user opens a URL first. The client acts on the data of the error. */
const urlElicitationRequired = -32042

/** Codes for the exchange of messages itself, such as a missing capability or an unsupported revision. */
const [lowest, highest] = [-32029, -32020]

/** Whether a client has to act on the code of this error, so that the error must not be replaced by a result. */
export function isProtocolError(answer: Answer): boolean {
  if (answer.kind !== 'error') return false
  const code = Number(memberText(answer, 'code'))
  return code === urlElicitationRequired || (code >= lowest && code <= highest)
}
