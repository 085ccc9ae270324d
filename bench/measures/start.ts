import { join } from 'node:path'
import { type Spread, toSpread } from '../lib/statistics.ts'
import type { Contestant, Stage } from '../stages.ts'
import { untilListed } from '../targets/target.ts'
import { type LeftOut, mayBeLeftOut, type RoundsParts, toReason } from './rounds.ts'

/** Milliseconds from the start of a process to its first complete list; targets take turns. */
export async function measureStart(
  stage: Stage,
  leftOut: LeftOut,
  parts: RoundsParts,
): Promise<Record<string, Spread>> {
  const taken = new Map<string, number[]>()
  // The first start is not measured, because it also creates the database and a token.
  for (let round = -1; round < parts.rounds; round++) {
    parts.say(`start: ${round < 0 ? 'warm-up' : `round ${round + 1} of ${parts.rounds}`}`)
    for (const contestant of stage.contestants) {
      const { name } = contestant
      if (name === 'direct' || name in leftOut) continue
      try {
        const milliseconds = await timeStart(contestant, join(parts.folder, `start-${name}`))
        if (round >= 0) taken.set(name, [...(taken.get(name) ?? []), milliseconds])
      } catch (error) {
        if (!mayBeLeftOut(contestant)) throw new Error(`start: ${name} failed`, { cause: error })
        leftOut[name] = toReason(error)
      }
    }
  }
  return Object.fromEntries([...taken].map(([name, values]) => [name, toSpread(values)]))
}

async function timeStart({ start, servers, tools }: Contestant, folder: string): Promise<number> {
  const began = performance.now()
  const target = await start({ servers, folder })
  try {
    await untilListed(target, tools)
    return performance.now() - began
  } finally {
    await target.close()
  }
}
