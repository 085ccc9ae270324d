import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryOf } from '../lib/proc.ts'
import type { Memory } from '../results.ts'
import { type Contestant, further, type Stage } from '../stages.ts'
import { type Servers, type Target, untilListed } from '../targets/target.ts'
import { type LeftOut, mayBeLeftOut, type RoundsParts, toReason } from './rounds.ts'

/** Time for the garbage collector after the start. */
const settleMs = 3000
const sessions = 1000
/** Targets that support many servers; a plain proxy has one server. */
const takesMany = new Set(['mcp-hub', 'sallyport'])

/** Resident memory of each process: idle with one server, with ten servers, and with a thousand sessions. */
export async function measureMemory(
  stage: Stage,
  leftOut: LeftOut,
  parts: RoundsParts & { readonly echo: string },
): Promise<Record<string, Memory>> {
  const found: Record<string, Memory> = {}
  for (const contestant of stage.contestants.filter(({ name }) => name !== 'direct')) {
    const { name, servers } = contestant
    parts.say(`memory: ${name}`)
    try {
      const few = await withTarget(contestant, servers, parts, async (target) => {
        const idle = await settled(target)
        return { idle, thousandSessions: await withSessions(target, parts) }
      })
      const ten: Servers = [servers[0], ...further(parts.echo, 9)]
      const tenServers = takesMany.has(name) ? await withTarget(contestant, ten, parts, settled) : undefined
      found[name] = { ...few, tenServers }
    } catch (error) {
      if (!mayBeLeftOut(contestant)) throw new Error(`memory: ${name} failed`, { cause: error })
      leftOut[name] = toReason(error)
    }
  }
  return found
}

async function withTarget<Found>(
  { name, start }: Contestant,
  servers: Servers,
  parts: RoundsParts,
  look: (target: Target) => Promise<Found>,
): Promise<Found> {
  const target = await start({ servers, folder: join(parts.folder, `memory-${name}-${servers.length}`) })
  try {
    await untilListed(target, 2 * servers.length)
    return await look(target)
  } finally {
    await target.close()
  }
}

async function withSessions(target: Target, { generator }: RoundsParts): Promise<number> {
  try {
    await generator.hold({ way: target.way, sessions })
    return await settled(target)
  } finally {
    await generator.release()
  }
}

async function settled({ pid }: Target): Promise<number> {
  await delay(settleMs)
  return pid === undefined ? 0 : memoryOf(pid)
}
