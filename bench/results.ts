import { z } from 'zod'
import { Cell } from './cells.ts'
import { Spread } from './lib/statistics.ts'

/** Results of one target in one cell over all rounds. Ratios are computed within each round. */
export const Measured = z.object({
  calls: z.int(),
  callsPerSecond: Spread,
  p50: Spread,
  p99: Spread,
  cpu: Spread.optional(),
  toYardstick: z.object({ p50: Spread, p99: Spread, cpu: Spread.optional() }),
})
export type Measured = z.infer<typeof Measured>

export const CellResult = z.object({
  cell: Cell,
  yardstick: z.string(),
  targets: z.record(z.string(), Measured),
  /** Targets that were left out, with the reason. */
  leftOut: z.record(z.string(), z.string()),
  /** Milliseconds for one commit of one row on this disk. */
  commit: z.object({ p50: Spread, p99: Spread }).optional(),
})
export type CellResult = z.infer<typeof CellResult>

/** Megabytes, measured once. */
export const Memory = z.object({
  idle: z.number(),
  tenServers: z.number().optional(),
  thousandSessions: z.number().optional(),
})
export type Memory = z.infer<typeof Memory>

export const Results = z.object({
  at: z.string(),
  /** A run with `--short`: answers were checked, but times are not meaningful. */
  short: z.boolean(),
  machine: z.object({ cpu: z.string(), cores: z.int(), memoryGb: z.number(), system: z.string(), node: z.string() }),
  rounds: z.int(),
  seconds: z.number(),
  versions: z.record(z.string(), z.string()),
  cells: z.array(CellResult),
  /** Milliseconds from the start of the process to the first complete list. */
  start: z.record(z.string(), Spread).optional(),
  memory: z.record(z.string(), Memory).optional(),
  /** Targets that could not be started for `start` and `memory`, with the reason. */
  leftOut: z.record(z.string(), z.string()),
})
export type Results = z.infer<typeof Results>
