import { z } from 'zod'

/** The transport and address of a target. */
export const Way = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('http'), url: z.string(), headers: z.record(z.string(), z.string()) }),
  z.object({ kind: z.literal('old-sse'), url: z.string() }),
  z.object({ kind: z.literal('stdio'), command: z.string(), args: z.array(z.string()) }),
])
export type Way = z.infer<typeof Way>

/** The request that every session repeats; several tools are called in turn. */
export const Asking = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), tools: z.array(z.string()).min(1), bytes: z.number() }),
  z.object({ kind: z.literal('list'), count: z.number() }),
])
export type Asking = z.infer<typeof Asking>

export const Job = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('slice'),
    way: Way,
    asking: Asking,
    /** Number of sessions, each with one socket and one request in flight. */
    inFlight: z.number(),
    warmUpMs: z.number(),
    measureMs: z.number(),
    /** The process whose CPU time is measured. */
    pid: z.number().optional(),
  }),
  z.object({ kind: z.literal('hold'), way: Way, sessions: z.number() }),
  z.object({ kind: z.literal('release') }),
])
export type Job = z.infer<typeof Job>
export type SliceJob = Extract<Job, { kind: 'slice' }>

export const Slice = z.object({
  calls: z.number(),
  callsPerSecond: z.number(),
  /** Milliseconds. */
  p50: z.number(),
  p99: z.number(),
  /** Milliseconds of CPU time per call. */
  cpu: z.number().optional(),
})
export type Slice = z.infer<typeof Slice>

export const Reply = z.union([
  z.object({ slice: Slice }),
  z.object({ held: z.number() }),
  z.object({ released: z.literal(true) }),
  z.object({ error: z.string() }),
])
export type Reply = z.infer<typeof Reply>
