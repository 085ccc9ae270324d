import { z } from 'zod'
import { Cell } from './cells.ts'
import { Spread } from './lib/statistics.ts'

/** What one target did in one cell, over all rounds; ratios are taken within a round and then spread. */
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
  /** Who could not take part, and why. */
  leftOut: z.record(z.string(), z.string()),
  /** One commit of one row by the disk itself, in milliseconds. */
  commit: z.object({ p50: Spread, p99: Spread }).optional(),
})
export type CellResult = z.infer<typeof CellResult>

/** Megabytes, once each. */
export const Memory = z.object({
  idle: z.number(),
  tenServers: z.number().optional(),
  thousandSessions: z.number().optional(),
})
export type Memory = z.infer<typeof Memory>

export const Results = z.object({
  at: z.string(),
  /** Answers were checked; the times mean nothing. */
  short: z.boolean(),
  machine: z.object({ cpu: z.string(), cores: z.int(), memoryGb: z.number(), system: z.string(), node: z.string() }),
  rounds: z.int(),
  seconds: z.number(),
  versions: z.record(z.string(), z.string()),
  cells: z.array(CellResult),
  /** Milliseconds from the start of the process to the first complete list. */
  start: z.record(z.string(), Spread).optional(),
  memory: z.record(z.string(), Memory).optional(),
  /** Who could not be started for these two, and why. */
  leftOut: z.record(z.string(), z.string()),
})
export type Results = z.infer<typeof Results>
