import { expect, it } from 'vitest'
import { judge } from '../../bench/goals.ts'
import { fillMarks, toSummary } from '../../bench/report/docs.ts'
import { toFigure } from '../../bench/report/figure.ts'
import { toReport } from '../../bench/report/text.ts'
import type { Measured, Results } from '../../bench/results.ts'

const flat = (value: number) => ({ median: value, min: value, max: value })

function measured(cpu: number): Measured {
  const toYardstick = { cpu: flat(cpu), p50: flat(cpu), p99: flat(cpu) }
  return { calls: 100, callsPerSecond: flat(1000), p50: flat(1), p99: flat(2), cpu: flat(cpu), toYardstick }
}

function resultsWith(cpu: number): Results {
  return {
    at: '2026-11-16T00:00:00.000Z',
    short: false,
    machine: { cpu: 'made up', cores: 2, memoryGb: 4, system: 'Linux', node: 'v24.0.0' },
    rounds: 3,
    seconds: 1,
    versions: {},
    cells: [
      {
        cell: { name: 'json-read-100B-16', stage: 'json', asks: 'echo', inFlight: 16, bytes: 100 },
        yardstick: 'raw-http',
        targets: { 'raw-http': measured(1), sallyport: measured(cpu), sdk: measured(20) },
        leftOut: { 'mcp-hub': 'it did not start' },
      },
    ],
    start: { sallyport: flat(400) },
    memory: { sallyport: { idle: 120 } },
    leftOut: {},
  }
}

it('tells which targets were reached and which were not', () => {
  const reached = (cpu: number) => judge(resultsWith(cpu)).map(({ reached }) => reached)
  expect(judge(resultsWith(1.2)).map(({ goal }) => goal)).toEqual([
    'CPU per reading call, json, 100B, 16 in flight',
    'p50 of a reading call, json, 100B, 16 in flight',
    'start to first list',
    'memory, idle',
    'CPU of sdk, json-read-100B-16',
  ])
  expect(reached(1.2)).toEqual([true, true, true, false, true])
  expect(reached(2.5)).toEqual([false, false, true, false, false])
})

it('names in the report who was left out and why', () => {
  expect(toReport(resultsWith(1.2))).toContain('Left out: mcp-hub (it did not start).')
})

it('fills the place between the two marks and nothing else', () => {
  const page = 'before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n'
  const filled = fillMarks(page, 'new')
  expect(filled).toBe('before\n<!-- bench -->\n\nnew\n\n<!-- /bench -->\nafter\n')
  expect(fillMarks(filled, 'new')).toBe(filled)
  expect(fillMarks('no marks\n', 'new')).toBe('no marks\n')
})

it('shows the ratios of all but the yardsticks in the summary', () => {
  const [titles, , row] = toSummary(resultsWith(1.2)).split('\n')
  expect(titles).toMatch(/\| sallyport +\| sdk +\|$/)
  expect(row).toMatch(/1\.20 \(1\.20-1\.20\) \| 20\.00/)
})

it('draws a bar for everybody whose CPU was measured', () => {
  const figure = toFigure(resultsWith(1.2))
  expect(figure.match(/<rect class="(?:bar|own)"/g)).toHaveLength(3)
  expect(figure).toContain('prefers-color-scheme: dark')
})
