import { z } from 'zod'

/** Median, minimum and maximum of one figure over all rounds. */
export const Spread = z.object({ median: z.number(), min: z.number(), max: z.number() })
export type Spread = z.infer<typeof Spread>

export function toSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: percentile(sorted, 50), min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN }
}

/** The value below which `percent` of the sorted values lie. */
export function percentile(sorted: readonly number[] | Float64Array, percent: number): number {
  const index = Math.ceil((sorted.length * percent) / 100) - 1
  return sorted[Math.max(0, index)] ?? Number.NaN
}
