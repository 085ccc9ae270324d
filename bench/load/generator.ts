import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Job, Reply, type Slice, type SliceJob } from './protocol.ts'

export type Generator = {
  slice(job: Omit<SliceJob, 'kind'>): Promise<Slice>
  /** Opens sessions with event streams and keeps them until they are released. */
  hold(job: Omit<Extract<Job, { kind: 'hold' }>, 'kind'>): Promise<void>
  release(): Promise<void>
  close(): Promise<void>
}

const program = fileURLToPath(new URL('load.ts', import.meta.url))
/** Time for opening, closing and the last answers; some peers take seconds for each. */
const patienceMs = 60_000

export function startGenerator(): Generator {
  let child: ChildProcess | undefined

  async function ask(job: Job, limitMs: number): Promise<Reply> {
    child ??= fork(program)
    const asked = child
    const limit = AbortSignal.timeout(limitMs)
    const done = new AbortController()
    const signal = AbortSignal.any([limit, done.signal])
    asked.send(job)
    const replied = once(asked, 'message', { signal })
    const exited = once(asked, 'exit', { signal })
    replied.catch(() => {})
    exited.catch(() => {})
    try {
      const [message]: unknown[] = await Promise.race([
        replied,
        exited.then(() => [{ error: 'The load generator ended' }]),
      ])
      const reply = Reply.parse(message)
      if ('error' in reply) throw new Error(reply.error)
      return reply
    } catch (error) {
      if (limit.aborted || asked.exitCode !== null) await close()
      throw limit.aborted ? new Error(`No answers for ${Math.round(limitMs / 1000)} s`, { cause: error }) : error
    } finally {
      done.abort()
    }
  }

  async function close(): Promise<void> {
    const ending = child
    child = undefined
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const exited = once(ending, 'exit')
    ending.kill('SIGKILL')
    await exited
  }

  return {
    async slice(job) {
      const reply = await ask({ kind: 'slice', ...job }, job.warmUpMs + job.measureMs + patienceMs)
      if (!('slice' in reply)) throw new Error('The load generator sent an unexpected answer')
      return reply.slice
    },
    async hold(job) {
      await ask({ kind: 'hold', ...job }, patienceMs)
    },
    async release() {
      await ask({ kind: 'release' }, patienceMs)
    },
    close,
  }
}
