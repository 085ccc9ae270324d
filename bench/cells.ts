import { z } from 'zod'

/** One measurement: the request, the number of parallel sessions, and the kind of server. */
export const Cell = z.object({
  name: z.string(),
  stage: z.enum(['json', 'sse', 'stdio', 'many', 'flat']),
  asks: z.enum(['echo', 'write', 'list']),
  inFlight: z.number(),
  /** Size of the text in the result. */
  bytes: z.number(),
})
export type Cell = z.infer<typeof Cell>

const sizes = { '100B': 100, '10kB': 10_000, '1MB': 1_000_000 } as const
type Size = keyof typeof sizes

export const cells: readonly Cell[] = [
  ...calls('json', 'echo', '100B', [1, 16, 64]),
  ...calls('json', 'echo', '10kB', [16]),
  ...calls('json', 'echo', '1MB', [1, 16]),
  ...calls('json', 'write', '100B', [1, 16, 64]),
  { name: 'json-200-sessions', stage: 'json', asks: 'echo', inFlight: 200, bytes: 100 },
  ...calls('sse', 'echo', '100B', [16, 64]),
  ...calls('sse', 'echo', '10kB', [16]),
  ...calls('sse', 'echo', '1MB', [16]),
  ...calls('stdio', 'echo', '100B', [1, 16, 64]),
  ...calls('stdio', 'echo', '10kB', [16]),
  ...calls('stdio', 'echo', '1MB', [16]),
  ...calls('stdio', 'write', '100B', [16]),
  { name: 'list-1000-tools', stage: 'many', asks: 'list', inFlight: 1, bytes: 0 },
  ...calls('flat', 'echo', '100B', [16]),
  ...calls('flat', 'write', '100B', [16]),
]

/** For CI, where times are not meaningful: each kind of server, tool and size once. */
export const shortCells: readonly Cell[] = [
  ...calls('json', 'echo', '100B', [16]),
  ...calls('json', 'echo', '1MB', [2]),
  ...calls('json', 'write', '100B', [16]),
  ...calls('sse', 'echo', '10kB', [4]),
  ...calls('stdio', 'echo', '10kB', [4]),
  ...calls('stdio', 'write', '100B', [4]),
  { name: 'list-1000-tools', stage: 'many', asks: 'list', inFlight: 1, bytes: 0 },
]

/** `json-read-100B-16`: HTTP server that answers in JSON, reading tool, 100 B of text, 16 sessions. */
function calls(stage: Cell['stage'], asks: 'echo' | 'write', size: Size, inFlights: readonly number[]): Cell[] {
  const does = asks === 'echo' ? 'read' : 'write'
  return inFlights.map((inFlight) => ({
    name: `${stage}-${does}-${size}-${inFlight}`,
    stage,
    asks,
    inFlight,
    bytes: sizes[size],
  }))
}

/** Measurements without load. */
export const measures: readonly string[] = ['start', 'memory']
