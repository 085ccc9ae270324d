/** A gateway in miniature: claims without end, prints what was acknowledged and what was refused, and waits to be killed. */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/lib/clock.ts'
import { createIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openStorage } from '../../src/storage/storage.ts'

const [folder = '', mode = 'claim'] = process.argv.slice(2)
const ids = createIds()
const databaseUrl = process.env.SALLYPORT_DATABASE_URL || undefined
const storage = await openStorage({ folder, databaseUrl, clock: systemClock, ids, log: silentLog })
writeSync(1, `instance ${storage.instance}\n`)
if (mode === 'claim') await Promise.all(Array.from({ length: 8 }, claimWithoutEnd))
else if (mode === 'steady') await claimWithoutEnd()
else setInterval(() => {}, 1000)

async function claimWithoutEnd(): Promise<void> {
  for (let round = 0; ; round++) {
    const id = ids.next('call')
    if (mode === 'steady') await new Promise((resolve) => setTimeout(resolve, 10))
    if (mode === 'steady') writeSync(1, `asked ${id}\n`)
    const claim = storage.claim({
      id,
      method: 'tools/call',
      principal: 'agent:reviewer',
      principalId: 'agent-reviewer',
      surface: 'mcp',
      connection: 'connection-1',
      server: 'files',
      scope: 'global',
      tool: 'files_change',
      original: 'change',
      arguments: { round },
      risk: 'write',
      decision: 'rule 1 allows it',
      startedAt: Date.now(),
    })
    const call = await claim.catch(() => undefined)
    writeSync(1, `${call ? 'claimed' : 'refused'} ${id}\n`)
    if (!call) await new Promise((resolve) => setTimeout(resolve, 20))
    if (!call) continue
    if (round % 3 > 0) storage.finish(call, { state: 'ok', endedAt: Date.now(), durationMs: 1 })
  }
}
