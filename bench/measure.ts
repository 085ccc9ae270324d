import { cpus, release, totalmem, type } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Cell } from './cells.ts'
import { createWorkFolder } from './lib/folders.ts'
import { startProgram } from './lib/program.ts'
import { startGenerator } from './load/generator.ts'
import { measureMemory } from './measures/memory.ts'
import { type RoundsParts, runStage } from './measures/rounds.ts'
import { measureStart } from './measures/start.ts'
import type { Options } from './options.ts'
import type { CellResult, Results } from './results.ts'
import { type Stage, toStages } from './stages.ts'
import { installPeers, peerVersions } from './targets/install-peers.ts'

const echoScript = fileURLToPath(new URL('servers/echo-http.ts', import.meta.url))

/** Runs all selected measurements, one after the other. The machine should be idle otherwise. */
export async function measure(options: Options, say: (line: string) => void): Promise<Results> {
  if (options.peers) await installPeers()
  const generator = startGenerator()
  const echo = await startProgram({ args: [echoScript] })
  try {
    const { rounds, seconds, warmUps, profile } = options
    const parts = { generator, folder: createWorkFolder(), rounds, seconds, warmUps, profile, say }
    const stages = toStages(echo.url, options.against).map((stage) => withChosen(stage, options.targets))
    const cells = await runCells(stages, options, parts)
    const leftOut: Record<string, string> = {}
    const single = stages.find(({ name }) => name === 'json')
    const wants = (measure: string) => (options.measures.includes(measure) ? single : undefined)
    const [starting, remembering] = [wants('start'), wants('memory')]
    return {
      at: new Date().toISOString(),
      short: options.short,
      machine: describeMachine(),
      rounds,
      seconds,
      versions: options.peers ? peerVersions : {},
      cells,
      ...(starting && { start: await measureStart(starting, leftOut, parts) }),
      ...(remembering && { memory: await measureMemory(remembering, leftOut, { ...parts, echo: echo.url }) }),
      leftOut,
    }
  } finally {
    await generator.close()
    await echo.stop()
  }
}

async function runCells(stages: readonly Stage[], options: Options, parts: RoundsParts): Promise<CellResult[]> {
  const results: CellResult[] = []
  for (const stage of stages) {
    const own = options.cells.filter((cell) => cell.stage === stage.name)
    if (own.length > 0) results.push(...(await runStage(stage, own, parts)))
  }
  return results
}

/** Keeps the yardstick, which all ratios need, and the chosen targets with their variants (`sallyport-10-servers`). */
function withChosen(stage: Stage, targets: readonly string[]): Stage {
  const chosen = [...targets, stage.yardstick]
  const takesPart = (name: string) => chosen.some((target) => name === target || name.startsWith(`${target}-`))
  return { ...stage, contestants: stage.contestants.filter(({ name }) => takesPart(name)) }
}

function describeMachine(): Results['machine'] {
  const all = cpus()
  return {
    cpu: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    system: `${type()} ${release()}`,
    node: process.version,
  }
}

/** Estimated minutes for a run with these options. */
export function estimate({ cells, measures, targets, rounds, seconds, warmUps }: Options): number {
  const taking = (cell: Cell) => (cell.stage === 'flat' ? 6 : Math.min(targets.length, cell.stage === 'stdio' ? 7 : 6))
  const slices = cells.reduce((sum, cell) => sum + taking(cell) * (rounds + warmUps), 0)
  const opening = 0.9 // opening and closing of all sessions, before and after a slice
  const warming = warmUps * 27 * 10 // every target of every stage, once
  const measuring = measures.length * targets.length * rounds * 2
  return (slices * (seconds * 1.2 + opening) + measuring + warming) / 60
}
