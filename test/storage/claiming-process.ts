/** A gateway in miniature: claims without end, prints what was acknowledged, and waits to be killed. */
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
else setInterval(() => {}, 1000)

async function claimWithoutEnd(): Promise<void> {
  for (let round = 0; ; round++) {
    const call = await storage.claim({
      id: ids.next('call'),
      method: 'tools/call',
      principal: 'agent:reviewer',
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
    writeSync(1, `claimed ${call.id}\n`)
    if (round % 3 > 0) storage.finish(call, { state: 'ok', endedAt: Date.now(), durationMs: 1 })
  }
}
