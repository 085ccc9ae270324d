import { parseArgs } from 'node:util'
import { type Cell, cells, measures, shortCells } from './cells.ts'
import { peerNames } from './targets/install-peers.ts'

export type Options = {
  readonly short: boolean
  readonly cells: readonly Cell[]
  readonly measures: readonly string[]
  readonly targets: readonly string[]
  readonly rounds: number
  readonly seconds: number
  readonly warmUps: number
  readonly peers: boolean
  readonly against: string | undefined
  readonly json: string | undefined
  readonly figure: string | undefined
  readonly from: string | undefined
  readonly profile: string | undefined
  readonly writeDocs: boolean
}

export const usage = `node bench/bench.ts [options]
  --short          one tiny round of a few cells: checks answers only, times are not meaningful
  --only A,B       only cells, measures (start, memory) and targets whose names start with A or B
  --rounds N       rounds of each cell (default: 5)
  --seconds S      seconds of a slice (default: 1.5)
  --peers          also measure mcp-hub, mcp-proxy and supergateway, installed into ~/.cache/sallyport/ on first use
  --against DIR    also measure the build of another checkout, as sallyport-before
  --json FILE      file for the results (default: .cache/bench/results.json)
  --figure FILE    draw CPU per call as SVG
  --write-docs     write the tables into docs/performance.md and README.md, and the figure into docs/images/
  --from FILE      measure nothing: use the results of an earlier run
  --profile DIR    write CPU profiles of the gateway into this folder`

const ownTargets = ['direct', 'raw-http', 'raw-undici', 'raw-pipe', 'sdk', 'sallyport']
const shortTargets = ['direct', 'raw-http', 'raw-pipe', 'sallyport']

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      peers: { type: 'boolean', default: false },
      against: { type: 'string' },
      json: { type: 'string' },
      figure: { type: 'string' },
      'write-docs': { type: 'boolean', default: false },
      from: { type: 'string' },
      profile: { type: 'string' },
    },
  })
  const { short, peers } = values
  if (short && values['write-docs'])
    throw new Error('--write-docs cannot be used with --short: its times are not meaningful')
  const chosen = choose(values.only?.split(',') ?? [], { short, peers })
  return {
    short,
    ...chosen,
    rounds: toNumber('rounds', values.rounds, short ? 1 : 5),
    seconds: toNumber('seconds', values.seconds, short ? 0.2 : 1.5),
    warmUps: short ? 0 : 1,
    peers,
    against: values.against,
    json: values.json,
    figure: values.figure,
    from: values.from,
    profile: values.profile,
    writeDocs: values['write-docs'],
  }
}

type Choice = Pick<Options, 'cells' | 'measures' | 'targets'>

function choose(only: readonly string[], { short, peers }: { short: boolean; peers: boolean }): Choice {
  const offered = short ? shortCells : cells
  const targets = [...(short ? shortTargets : ownTargets), ...(peers ? peerNames : [])]
  const kinds = { cells: offered.map(({ name }) => name), measures: short ? [] : measures, targets }
  const named = (names: readonly string[]) => names.filter((name) => only.some((start) => name.startsWith(start)))
  const unknown = only.filter((start) => !Object.values(kinds).some((names) => names.some((n) => n.startsWith(start))))
  if (unknown.length > 0) throw new Error(`--only: no cell, measure or target is named ${unknown.join(', ')}`)
  const wantsWork = named([...kinds.cells, ...kinds.measures]).length > 0
  const wantsTargets = named(targets).length > 0
  return {
    cells: wantsWork ? offered.filter(({ name }) => named(kinds.cells).includes(name)) : offered,
    measures: wantsWork ? named(kinds.measures) : kinds.measures,
    targets: wantsTargets ? named(targets) : targets,
  }
}

function toNumber(name: string, given: string | undefined, standard: number): number {
  if (given === undefined) return standard
  const value = Number(given)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0`)
  return value
}
