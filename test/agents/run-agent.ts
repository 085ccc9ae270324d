import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { collect } from '../cli/support.ts'
import type { AgentProgram } from './agents.ts'

export type Running = {
  readonly folder: string
  readonly modelUrl: string
  readonly mcpUrl: string
  readonly token: string
}

/** Exit codes of agents mislead, so none is told: look at what reached the gateway and the model. */
export type AgentRun = { readonly stdout: string; readonly stderr: string }

const runMs = 90_000
/** Nobody listens there: what an agent wants from elsewhere fails at once, and never leaves the machine. */
const nowhere = 'http://127.0.0.1:9'

/** One run of an agent in an empty home and a bare environment; whatever it started has ended afterwards. */
export async function runAgent(agent: AgentProgram, { folder, token, ...addresses }: Running): Promise<AgentRun> {
  const place = { home: join(folder, 'home'), work: join(folder, 'work'), ...addresses }
  const { command, args, env, files } = agent.start(place)
  await Promise.all([mkdir(place.home, { recursive: true }), mkdir(place.work, { recursive: true })])
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  const bare = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: place.home, NO_COLOR: '1' }
  const offline = { HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, NO_PROXY: '127.0.0.1,localhost' }
  const child = spawn(command, args, {
    cwd: place.work,
    env: { ...bare, ...offline, SALLYPORT_AGENT_TOKEN: token, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  const limit = setTimeout(() => endGroup(child.pid), runMs)
  const closed = once(child, 'close')
  closed.catch(() => {})
  try {
    await once(child, 'exit')
  } finally {
    clearTimeout(limit)
    endGroup(child.pid)
  }
  await closed
  if (child.signalCode !== null) throw new Error(`${agent.title} did not end by itself:\n${stdout()}\n${stderr()}`)
  return { stdout: stdout(), stderr: stderr() }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}
