import { GatewayError } from '../../contract/errors.ts'

/** The user pressed Ctrl+C at a prompt. */
export class Cancelled extends GatewayError {
  constructor() {
    super('request-invalid', 'Cancelled; nothing was changed')
  }
}

/** The answer of a prompt; a symbol means that it was cancelled. */
export function toAnswer(answer: string | symbol): string
export function toAnswer(answer: boolean | symbol): boolean
export function toAnswer(answer: string | boolean | symbol): string | boolean {
  if (typeof answer === 'symbol') throw new Cancelled()
  return answer
}
