import { setTimeout as delay } from 'node:timers/promises'
import { namesOf } from '../load/check.ts'
import { nextId, toList } from '../load/messages.ts'
import type { Way } from '../load/protocol.ts'
import { openSession } from '../load/session.ts'

/** The definition of an echo server for a gateway. */
export type EchoServer =
  | { readonly name: string; readonly transport: 'http'; readonly url: string }
  | { readonly name: string; readonly transport: 'stdio'; readonly command: string; readonly args: readonly string[] }

/** At least one server; a plain proxy uses only the first. */
export type Servers = readonly [EchoServer, ...EchoServer[]]

export type Setting = {
  readonly servers: Servers
  /** Folder of this target; its content is kept until the bench ends. */
  readonly folder: string
  /** Number of audit entries before the start. */
  readonly entries?: number | undefined
  /** Folder for a CPU profile of the process. */
  readonly profile?: string | undefined
}

/** A program between the load generator and the servers. `direct` has no process. */
export type Target = {
  readonly way: Way
  readonly pid: number | undefined
  /** The tool name at this target. */
  toolName(server: string, tool: string): string
  close(): Promise<void>
}

export type StartTarget = (setting: Setting) => Promise<Target>

export const sameName = (_server: string, tool: string): string => tool

const listedMs = 30_000

/** Resolves when the target lists at least this many tools, so that all servers are connected. */
export async function untilListed(target: Target, count: number): Promise<void> {
  const end = performance.now() + listedMs
  let last = 'nothing'
  while (performance.now() < end) {
    const found = await listOnce(target).catch((error: unknown) => String(error))
    if (typeof found === 'number' && found >= count) return
    last = typeof found === 'number' ? `${found} tools` : found
    await delay(5)
  }
  throw new Error(`The target did not list ${count} tools within ${listedMs} ms: ${last}`)
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
