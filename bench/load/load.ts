// The load generator, a separate process: runs one job at a time and ends with its parent.
import { Job, type Reply } from './protocol.ts'
import type { Session } from './session.ts'
import { openSessions, runSlice } from './slice.ts'

let held: Session[] = []

process.on('message', async (message) => {
  const reply = await work(Job.parse(message)).catch((error: unknown): Reply => ({ error: toText(error) }))
  process.send?.(reply)
})
process.on('disconnect', () => process.exit(0))

async function work(job: Job): Promise<Reply> {
  if (job.kind === 'slice') return { slice: await runSlice(job) }
  if (job.kind === 'release') return release()
  // In groups, because thousands of new sockets at once are not a realistic load.
  while (held.length < job.sessions) {
    const group = await openSessions({ way: job.way, inFlight: Math.min(50, job.sessions - held.length) })
    held.push(...group)
    await Promise.all(group.map((session) => session.listen()))
  }
  return { held: held.length }
}

async function release(): Promise<Reply> {
  await Promise.all(held.map((session) => session.close()))
  held = []
  return { released: true }
}

function toText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}
