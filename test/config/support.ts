import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type ConfigProblem,
  type ConfigStore,
  createConfig,
  parseConfig,
  type Roster,
} from '../../src/config/config.ts'
import type { Config } from '../../src/contract/config.ts'
import type { EventTable } from '../../src/contract/events.ts'
import type { Principal } from '../../src/contract/principal.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createEmitter } from '../../src/lib/emitter.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type ChangeList, createChangeList, plainSeal } from './record.ts'

export type Folder = AsyncDisposable & {
  readonly path: string
  write(name: string, text: string | Buffer): Promise<string>
  read(name: string): Promise<string>
}

export async function createFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-config-'))
  return {
    path,
    async write(name, text) {
      await writeFile(join(path, name), text)
      return join(path, name)
    },
    read: (name) => readFile(join(path, name), 'utf8'),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

export type Heard =
  | { name: 'config-changed'; event: EventTable['config-changed'] }
  | { name: 'principals-changed'; event: EventTable['principals-changed'] }
  | { name: 'config-rejected'; event: EventTable['config-rejected'] }

/** Who makes the changes of these tests. */
export const by: Principal = { kind: 'user', name: 'ada', role: 'administrator' }

export type Running = AsyncDisposable & {
  readonly store: ConfigStore
  readonly record: ChangeList
  readonly heard: Heard[]
  /** The configurations that were in force when a change was announced. */
  readonly inForce: Config[]
  /** Resolves with the next event of this name that was not waited for before. */
  hear(name: Heard['name']): Promise<Heard['event']>
}

export async function startStore(
  file: string,
  environment: Record<string, string> = {},
  roster?: () => Roster,
  record: ChangeList = createChangeList(),
): Promise<Running> {
  const heard: Heard[] = []
  const inForce: Config[] = []
  let store: ConfigStore | undefined
  let waitedFor = 0
  let onEvent = (): void => undefined
  const emitter = createEmitter<EventTable>((error) => {
    throw error
  })
  const keep = (entry: Heard) => {
    heard.push(entry)
    if (store !== undefined && entry.name === 'config-changed') inForce.push(store.current())
    onEvent()
  }
  emitter.on('config-changed', (event) => keep({ name: 'config-changed', event }))
  emitter.on('principals-changed', (event) => keep({ name: 'principals-changed', event }))
  emitter.on('config-rejected', (event) => keep({ name: 'config-rejected', event }))
  store = await createConfig({
    file,
    clock: systemClock,
    log: silentLog,
    environment,
    emit: emitter.emit,
    record,
    seal: plainSeal,
    ...(roster && { roster }),
  })
  const running = store
  return {
    store: running,
    record,
    heard,
    inForce,
    async hear(name) {
      while (true) {
        const index = heard.findIndex((entry, at) => at >= waitedFor && entry.name === name)
        const found = heard[index]
        if (found !== undefined) {
          waitedFor = index + 1
          return found.event
        }
        const { promise, resolve } = Promise.withResolvers<void>()
        onEvent = resolve
        await promise
      }
    },
    [Symbol.asyncDispose]: () => running.close(),
  }
}

export function problemsOf(file: string, text: string): readonly ConfigProblem[] {
  const reading = parseConfig(file, text)
  return reading.ok ? [] : reading.problems
}

export function configOf(text: string, file = 'sallyport.yaml'): Config {
  const reading = parseConfig(file, text)
  if (!reading.ok)
    throw new Error(reading.problems.map(({ line, key, message }) => `${line} ${key} ${message}`).join('\n'))
  return reading.config
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
