import { judge, toMs, type Verdict } from '../goals.ts'
import type { Spread } from '../lib/statistics.ts'
import type { CellResult, Results } from '../results.ts'
import { toTable } from './table.ts'

const order = [
  'direct',
  'raw-http',
  'raw-pipe',
  'raw-undici',
  'sallyport',
  'sdk',
  'mcp-hub',
  'mcp-proxy',
  'supergateway',
]

/** All results, for the terminal and for docs/performance.md. */
export function toReport(results: Results): string {
  const goals = results.short ? [] : judge(results)
  const parts = [
    toConditions(results),
    ...(goals.length === 0 ? [] : [`### Targets\n\n${toGoals(goals)}`]),
    ...(results.cells.length === 0 ? [] : [`### Cells\n\n${results.cells.map(toCell).join('\n\n')}`]),
    ...(results.start ? [`### Start to first list\n\n${toStart(results.start)}`] : []),
    ...(results.memory ? [`### Memory\n\n${toMemory(results.memory)}`] : []),
  ]
  return parts.join('\n\n')
}

function toConditions({ at, short, machine, rounds, seconds, versions }: Results): string {
  const peers = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return [
    `Measured ${at.slice(0, 10)} on ${machine.cores} cores (${machine.cpu}), ${machine.memoryGb} GB, ${machine.system}, Node ${machine.node.slice(1)};`,
    `${rounds} ${rounds === 1 ? 'round' : 'rounds'}, slices of ${seconds} s${peers.length > 0 ? `; ${peers.join(', ')}` : ''}.`,
    ...(short ? ['A short run: every answer was checked, but the times are not meaningful.'] : []),
  ].join('\n')
}

function toGoals(goals: readonly Verdict[]): string {
  const rows = goals.map(({ goal, wanted, found, reached }) => [goal, wanted, found, reached ? 'yes' : '**no**'])
  return toTable(['target', 'wanted', 'measured', 'reached'], rows)
}

function toCell(result: CellResult): string {
  const rows = inOrder(Object.keys(result.targets)).flatMap((name) => {
    const measured = result.targets[name]
    if (!measured) return []
    const { callsPerSecond, p50, p99, cpu, toYardstick } = measured
    return [
      [
        name,
        callsPerSecond.median.toFixed(0),
        toMs(p50.median),
        toMs(p99.median),
        cpu ? cpu.median.toFixed(3) : '-',
        toYardstick.cpu ? toRatio(toYardstick.cpu) : '-',
        toRatio(toYardstick.p50),
        toRatio(toYardstick.p99),
      ],
    ]
  })
  const titles = ['target', 'calls/s', 'p50', 'p99', 'CPU ms/call', 'CPU ratio', 'p50 ratio', 'p99 ratio']
  const notes = [
    ...(result.commit
      ? [`Commit of the disk: p50 ${toMs(result.commit.p50.median)}, p99 ${toMs(result.commit.p99.median)}.`]
      : []),
    ...Object.entries(result.leftOut).map(([name, reason]) => `Left out: ${name} (${reason}).`),
  ]
  return [`**${result.cell.name}**, ratios to ${result.yardstick}`, toTable(titles, rows), ...notes].join('\n\n')
}

function toStart(start: Readonly<Record<string, Spread>>): string {
  const rows = inOrder(Object.keys(start)).map((name) => {
    const spread = start[name]
    return [name, ...(spread ? [toMs(spread.median), toMs(spread.min), toMs(spread.max)] : [])]
  })
  return toTable(['target', 'median', 'min', 'max'], rows)
}

function toMemory(memory: NonNullable<Results['memory']>): string {
  const toMb = (value: number | undefined) => (value === undefined ? '-' : `${value.toFixed(0)} MB`)
  const rows = inOrder(Object.keys(memory)).map((name) => {
    const found = memory[name]
    return [name, toMb(found?.idle), toMb(found?.tenServers), toMb(found?.thousandSessions)]
  })
  return toTable(['target', 'idle', '10 servers', '1,000 sessions'], rows)
}

/** The median, and in brackets the minimum and maximum of all rounds. */
export function toRatio({ median, min, max }: Spread): string {
  return `${median.toFixed(2)} (${min.toFixed(2)}-${max.toFixed(2)})`
}

/** Plain proxies first, then Sallyport, then other programs; variants last. */
export function inOrder(names: readonly string[]): string[] {
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length)
  return names.toSorted((a, b) => place(a) - place(b))
}
