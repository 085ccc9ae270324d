import { z } from 'zod'

type Range = { readonly min: number; readonly max: number; readonly unit?: string; readonly missing?: string }

/** A whole number from the command line. An empty text is not 0, and `1e3` is not accepted. */
export function wholeNumber({ min, max, unit, missing }: Range) {
  const expected = `must be a whole number from ${min} to ${max}${unit === undefined ? '' : `, in ${unit}`}`
  return z
    .string(missing)
    .regex(/^\d{1,15}$/, expected)
    .transform(Number)
    .refine((value) => value >= min && value <= max, expected)
}
