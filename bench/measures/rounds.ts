import { join } from 'node:path'
import type { Cell } from '../cells.ts'
import { toSpread } from '../lib/statistics.ts'
import type { Generator } from '../load/generator.ts'
import type { Asking, Slice } from '../load/protocol.ts'
import type { CellResult, Measured } from '../results.ts'
import { type Contestant, type Stage, toolsOfMany } from '../stages.ts'
import { peerNames } from '../targets/install-peers.ts'
import { type Target, untilListed } from '../targets/target.ts'
import { type Commits, measureCommits } from './commits.ts'

export type Running = { readonly contestant: Contestant; readonly target: Target }
export type LeftOut = Record<string, string>

export type RoundsParts = {
  readonly generator: Generator
  readonly folder: string
  readonly rounds: number
  readonly seconds: number
  /** Rounds that are not measured, because the first calls include compilation. */
  readonly warmUps: number
  readonly profile: string | undefined
  say(line: string): void
}

/**
 * Load before the first measurement, until the JIT compiler has optimised the code; a larger program needs more calls for
 * that. After one second of load, Sallyport costs 1.5 times as much per call as after ten.
 */
const cold = { seconds: 8, inFlight: 16 }

/** Runs all cells of a stage. Each target is started once; each round measures a slice of every target in turn. */
export async function runStage(stage: Stage, cells: readonly Cell[], parts: RoundsParts): Promise<CellResult[]> {
  const leftOut: LeftOut = {}
  const running = await startAll(stage, leftOut, parts)
  try {
    if (parts.warmUps > 0) await warmUp(stage, cells, running, parts)
    const results: CellResult[] = []
    for (const cell of cells) {
      const field = { stage, running, leftOut: { ...leftOut } }
      results.push(await runCell(cell, field, parts))
    }
    return results
  } finally {
    await Promise.all(running.map(({ target }) => target.close()))
  }
}

/** Failures are ignored here: the measurement reports them. */
async function warmUp(
  stage: Stage,
  [first]: readonly Cell[],
  running: readonly Running[],
  parts: RoundsParts,
): Promise<void> {
  if (!first) return
  parts.say(`${stage.name}: warm-up`)
  const { seconds, inFlight } = cold
  for (const one of running) await runSlice({ ...first, inFlight }, one, { ...parts, seconds }).catch(() => {})
}

async function startAll(stage: Stage, leftOut: LeftOut, parts: RoundsParts): Promise<Running[]> {
  const running: Running[] = []
  for (const contestant of stage.contestants) {
    try {
      running.push({ contestant, target: await startOne(stage, contestant, parts) })
    } catch (error) {
      if (!mayBeLeftOut(contestant)) {
        await Promise.all(running.map(({ target }) => target.close()))
        throw new Error(`${stage.name}: ${contestant.name} failed`, { cause: error })
      }
      leftOut[contestant.name] = toReason(error)
      parts.say(`${stage.name}: ${contestant.name} is left out: ${toReason(error)}`)
    }
  }
  return running
}

async function startOne(stage: Stage, contestant: Contestant, parts: RoundsParts): Promise<Target> {
  const { name, servers, tools, entries } = contestant
  const target = await contestant.start({
    servers,
    entries,
    folder: join(parts.folder, `${stage.name}-${name}`),
    profile: parts.profile,
  })
  try {
    await untilListed(target, tools)
    return target
  } catch (error) {
    await target.close()
    throw error
  }
}

type Field = { readonly stage: Stage; readonly running: readonly Running[]; readonly leftOut: LeftOut }

async function runCell(cell: Cell, field: Field, parts: RoundsParts): Promise<CellResult> {
  const { stage, running, leftOut } = field
  const slices = new Map<string, Slice[]>(running.map(({ contestant }) => [contestant.name, []]))
  const commits: Commits[] = []
  for (let round = -parts.warmUps; round < parts.rounds; round++) {
    parts.say(`${cell.name}: ${round < 0 ? 'warm-up' : `round ${round + 1} of ${parts.rounds}`}`)
    if (cell.asks === 'write' && round >= 0) commits.push(measureCommits(parts.folder, parts.seconds * 200))
    for (const one of running) {
      const { name } = one.contestant
      if (name in leftOut) continue
      try {
        const slice = await runSlice(cell, one, parts)
        if (round >= 0) slices.get(name)?.push(slice)
      } catch (error) {
        if (!mayBeLeftOut(one.contestant)) throw new Error(`${cell.name}: ${name} failed`, { cause: error })
        leftOut[name] = toReason(error)
        parts.say(`${cell.name}: ${name} is left out: ${toReason(error)}`)
      }
    }
  }
  const measured = [...slices].filter(([name]) => !(name in leftOut))
  const yardstick = slices.get(stage.yardstick) ?? []
  return {
    cell,
    yardstick: stage.yardstick,
    targets: Object.fromEntries(measured.map(([name, own]) => [name, toMeasured(own, yardstick)])),
    leftOut,
    ...(commits.length > 0 && {
      commit: { p50: toSpread(commits.map(({ p50 }) => p50)), p99: toSpread(commits.map(({ p99 }) => p99)) },
    }),
  }
}

function runSlice(cell: Cell, { contestant, target }: Running, parts: RoundsParts): Promise<Slice> {
  return parts.generator.slice({
    way: target.way,
    asking: toAsking(cell, contestant, target),
    inFlight: cell.inFlight,
    warmUpMs: parts.seconds * 200,
    measureMs: parts.seconds * 1000,
    pid: target.pid,
  })
}

/** Calls use every server in turn, except the server for list requests. */
function toAsking(cell: Cell, { servers }: Contestant, target: Target): Asking {
  if (cell.asks === 'list') return { kind: 'list', count: toolsOfMany }
  const called = servers.filter(({ name }) => name !== 'many')
  return { kind: 'call', tools: called.map(({ name }) => target.toolName(name, cell.asks)), bytes: cell.bytes }
}

function toMeasured(own: readonly Slice[], yardstick: readonly Slice[]): Measured {
  const spread = (of: (slice: Slice) => number) => toSpread(own.map(of))
  const ratio = (of: (slice: Slice) => number) =>
    toSpread(
      own.flatMap((slice, round) => {
        const other = yardstick[round]
        return other ? [of(slice) / of(other)] : []
      }),
    )
  const cpu = (slice: Slice) => slice.cpu ?? Number.NaN
  const hasCpu = own.every((slice) => slice.cpu !== undefined)
  return {
    calls: own.reduce((sum, { calls }) => sum + calls, 0),
    callsPerSecond: spread(({ callsPerSecond }) => callsPerSecond),
    p50: spread(({ p50 }) => p50),
    p99: spread(({ p99 }) => p99),
    ...(hasCpu && { cpu: spread(cpu) }),
    toYardstick: { p50: ratio(({ p50 }) => p50), p99: ratio(({ p99 }) => p99), ...(hasCpu && { cpu: ratio(cpu) }) },
  }
}

/** A failing program of others is left out; a failing program of ours fails the bench. */
export function mayBeLeftOut({ name }: Contestant): boolean {
  return peerNames.includes(name)
}

export function toReason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.replace(/\s+/g, ' ').slice(0, 300)
}
