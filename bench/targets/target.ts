import { setTimeout as delay } from 'node:timers/promises'
import { namesOf } from '../load/check.ts'
import { nextId, toList } from '../load/messages.ts'
import type { Way } from '../load/protocol.ts'
import { openSession } from '../load/session.ts'

/** An echo server, as a gateway is told of it. */
export type EchoServer =
  | { readonly name: string; readonly transport: 'http'; readonly url: string }
  | { readonly name: string; readonly transport: 'stdio'; readonly command: string; readonly args: readonly string[] }

/** Servers with at least one, which is all that a plain proxy can stand in front of. */
export type Servers = readonly [EchoServer, ...EchoServer[]]

export type Setting = {
  readonly servers: Servers
  /** Of this target alone; what is in it stays until the bench is over. */
  readonly folder: string
  /** Entries of the audit that are there before the start. */
  readonly entries?: number | undefined
  /** Where a profile of the process is written when it ends. */
  readonly profile?: string | undefined
}

/** Something that runs between the load and the servers; or nothing, and then it has no process. */
export type Target = {
  readonly way: Way
  readonly pid: number | undefined
  /** The name under which a tool of a server is called here. */
  toolName(server: string, tool: string): string
  close(): Promise<void>
}

export type StartTarget = (setting: Setting) => Promise<Target>

export const sameName = (_server: string, tool: string): string => tool

const listedMs = 30_000

/** Resolves when the target lists this many tools at least: not before that would an agent find what it came for. */
export async function untilListed(target: Target, count: number): Promise<void> {
  const end = performance.now() + listedMs
  let last = 'nothing'
  while (performance.now() < end) {
    const found = await listOnce(target).catch((error: unknown) => String(error))
    if (typeof found === 'number' && found >= count) return
    last = typeof found === 'number' ? `${found} tools` : found
    await delay(5)
  }
  throw new Error(`It did not list ${count} tools within ${listedMs} ms: ${last}`)
}

async function listOnce(target: Target): Promise<number> {
  const session = await openSession(target.way)
  try {
    const id = nextId()
    return namesOf(await session.exchange(id, toList(id))).length
  } finally {
    await session.close()
  }
}
