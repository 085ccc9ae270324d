import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createLines } from '../lib/lines.ts'
import { initialized, initializeParams, nextId, toRequest } from './messages.ts'
import type { Way } from './protocol.ts'
import type { Session } from './session.ts'
import { createWaiting } from './waiting.ts'

type StdioWay = Extract<Way, { kind: 'stdio' }>
type Child = { readonly process: ChildProcess; readonly waiting: ReturnType<typeof createWaiting>; sessions: number }

const children = new Map<string, Child>()

/** Connects directly to a stdio server. All sessions share one child process, as behind a gateway. */
export async function openStdioSession(way: StdioWay): Promise<Session> {
  const key = JSON.stringify(way)
  const child = children.get(key) ?? start(way)
  children.set(key, child)
  child.sessions += 1
  const exchange = (id: number, body: string) => {
    child.process.stdin?.write(`${body}\n`)
    return child.waiting.expect(id)
  }
  const id = nextId()
  await exchange(id, toRequest(id, 'initialize', initializeParams))
  child.process.stdin?.write(`${initialized}\n`)
  return { exchange, listen: async () => {}, close }

  async function close(): Promise<void> {
    child.sessions -= 1
    if (child.sessions > 0) return
    children.delete(key)
    child.process.stdin?.end()
    if (child.process.exitCode === null) await once(child.process, 'exit')
  }
}

function start({ command, args }: StdioWay): Child {
  const process = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = createWaiting()
  process.stdout.on('data', createLines(waiting.receive).push)
  process.on('exit', () => waiting.fail(new Error('The server ended')))
  return { process, waiting, sessions: 0 }
}
