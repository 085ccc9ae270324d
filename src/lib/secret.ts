import { inspect } from 'node:util'

/** A value that logging, printing and JSON show as `[secret]`. `reveal()` is easy to find in a code review. */
export type SecretValue = {
  reveal(): string
  toJSON(): string
  toString(): string
  [inspect.custom](): string
}

/** The text that replaces a hidden value. */
export const hiddenMark = '[secret]'

export function secret(value: string): SecretValue {
  const hidden = () => hiddenMark
  return Object.freeze({ reveal: () => value, toJSON: hidden, toString: hidden, [inspect.custom]: hidden })
}
