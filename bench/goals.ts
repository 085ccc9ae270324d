import type { CellResult, Measured, Results } from './results.ts'
import { peerNames } from './targets/install-peers.ts'

/** One speed goal, with the measured value of this run. */
export type Verdict = {
  readonly goal: string
  readonly wanted: string
  readonly found: string
  readonly reached: boolean
}

/** Differences up to this factor are noise between runs. */
const flatness = 1.1

/** Checks the goals; goals that were not measured are left out. */
export function judge(results: Results): Verdict[] {
  return [...ratios(results), ...writing(results), ...absolute(results), ...peers(results), ...flat(results)]
}

type RatioGoal = { goal: string; cell: string; figure: 'cpu' | 'p50' | 'p99'; atMost: number }

const ratioGoals: readonly RatioGoal[] = [
  ...['json', 'sse'].flatMap((form) => [
    ...['100B', '10kB'].flatMap((size) => [
      ratio(`CPU per reading call, ${form}, ${size}, 16 in flight`, `${form}-read-${size}-16`, 'cpu', 1.3),
      ratio(`p50 of a reading call, ${form}, ${size}, 16 in flight`, `${form}-read-${size}-16`, 'p50', 1.3),
    ]),
    ratio(`CPU per reading call, ${form}, 1MB, 16 in flight`, `${form}-read-1MB-16`, 'cpu', 2),
    ratio(`p50 of a reading call, ${form}, 1MB, 16 in flight`, `${form}-read-1MB-16`, 'p50', 2),
  ]),
  ratio('CPU per writing call, 64 in flight', 'json-write-100B-64', 'cpu', 2),
  ratio('CPU per reading call, stdio, 16 in flight', 'stdio-read-100B-16', 'cpu', 1.5),
  ratio('CPU per reading call, stdio, 64 in flight', 'stdio-read-100B-64', 'cpu', 1.5),
  ratio('p99 with 200 sessions', 'json-200-sessions', 'p99', 3),
]

function ratio(goal: string, cell: string, figure: RatioGoal['figure'], atMost: number): RatioGoal {
  return { goal, cell, figure, atMost }
}

function ratios(results: Results): Verdict[] {
  return ratioGoals.flatMap(({ goal, cell, figure, atMost }) => {
    const spread = targetIn(findCell(results, cell), 'sallyport')?.toYardstick[figure]
    if (!spread) return []
    const yardstick = findCell(results, cell)?.yardstick ?? ''
    return [verdict(goal, `at most ${atMost} × ${yardstick}`, `${spread.median.toFixed(2)} ×`, spread.median <= atMost)]
  })
}

/** A writing call may take the time of the plain proxy plus one commit. */
function writing(results: Results): Verdict[] {
  return [1, 16, 64].flatMap((inFlight) => {
    const result = findCell(results, `json-write-100B-${inFlight}`)
    const [own, plain] = [targetIn(result, 'sallyport'), targetIn(result, 'raw-http')]
    if (!result?.commit || !own || !plain) return []
    const most = plain.p50.median + result.commit.p50.median
    const goal = `p50 of a writing call, ${inFlight} in flight`
    const wanted = `at most ${toMs(most)} (raw-http ${toMs(plain.p50.median)} + commit ${toMs(result.commit.p50.median)})`
    return [verdict(goal, wanted, toMs(own.p50.median), own.p50.median <= most)]
  })
}

function absolute({ cells, start, memory }: Results): Verdict[] {
  const list = targetIn(
    cells.find(({ cell }) => cell.name === 'list-1000-tools'),
    'sallyport',
  )?.p50.median
  const first = start?.sallyport?.median
  const idle = memory?.sallyport?.idle
  return [
    ...(list === undefined ? [] : [verdict('tools/list of 1,000 tools, p50', 'at most 10 ms', toMs(list), list <= 10)]),
    ...(first === undefined ? [] : [verdict('start to first list', 'at most 500 ms', toMs(first), first <= 500)]),
    ...(idle === undefined ? [] : [verdict('memory, idle', 'at most 100 MB', `${idle.toFixed(0)} MB`, idle <= 100)]),
  ]
}

/** Compares with the programs that use the SDK. */
function peers(results: Results): Verdict[] {
  return ['json-read-100B-16', 'sse-read-100B-16', 'stdio-read-100B-16'].flatMap((name) => {
    const result = findCell(results, name)
    const own = targetIn(result, 'sallyport')?.cpu?.median
    return ['sdk', ...peerNames].flatMap((peer) => {
      const other = targetIn(result, peer)?.cpu?.median
      if (own === undefined || other === undefined) return []
      const times = other / own
      return [verdict(`CPU of ${peer}, ${name}`, 'at least 10 × Sallyport', `${times.toFixed(1)} ×`, times >= 10)]
    })
  })
}

function flat(results: Results): Verdict[] {
  return results.cells
    .filter(({ cell }) => cell.stage === 'flat')
    .flatMap((result) => {
      const own = targetIn(result, 'sallyport')?.cpu?.median
      return Object.entries(result.targets).flatMap(([name, { cpu }]) => {
        if (!name.startsWith('sallyport-') || own === undefined || !cpu) return []
        const times = cpu.median / own
        const goal = `CPU per ${result.cell.asks === 'write' ? 'writing' : 'reading'} call, ${name.slice('sallyport-'.length)}`
        return [verdict(goal, `at most ${flatness} × with one server`, `${times.toFixed(2)} ×`, times <= flatness)]
      })
    })
}

function findCell({ cells }: Results, name: string): CellResult | undefined {
  return cells.find(({ cell }) => cell.name === name)
}

function targetIn(result: CellResult | undefined, target: string): Measured | undefined {
  return result?.targets[target]
}

function verdict(goal: string, wanted: string, found: string, reached: boolean): Verdict {
  return { goal, wanted, found, reached }
}

export function toMs(milliseconds: number): string {
  return `${milliseconds.toFixed(milliseconds < 10 ? 2 : 0)} ms`
}
