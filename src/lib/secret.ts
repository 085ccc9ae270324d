import { inspect } from 'node:util'

/** A value that shows itself to nobody: revealing it is a word that stands out in a review. */
export type SecretValue = {
  reveal(): string
  toJSON(): string
  toString(): string
  [inspect.custom](): string
}

/** What stands in the place of a value that is hidden. */
export const hiddenMark = '[secret]'

export function secret(value: string): SecretValue {
  const hidden = () => hiddenMark
  return Object.freeze({ reveal: () => value, toJSON: hidden, toString: hidden, [inspect.custom]: hidden })
}
