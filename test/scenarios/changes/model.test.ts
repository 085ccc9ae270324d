import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ConfigEdit, type ConfigStore, createConfig, toSharedConfig } from '../../../src/config/config.ts'
import { toGatewayError } from '../../../src/contract/errors.ts'
import type { EventTable } from '../../../src/contract/events.ts'
import { ServerDefinition } from '../../../src/contract/server.ts'
import { createEmitter } from '../../../src/lib/emitter.ts'
import { silentLog } from '../../../src/lib/log.ts'
import type { ConfigChangeStore } from '../../../src/storage/tables/config-changes.ts'
import { plainSeal } from '../../config/record.ts'
import { type DatabaseKind, databases, observe, open, type Place, placeOn } from '../../storage/support.ts'
import { ada, spare } from './people.ts'

/** What happens to a configuration. An edit is one of the file, by somebody at an editor. */
const steps = [
  'add b',
  'add c',
  'remove b',
  'enable b',
  'edit',
  'edit, add c',
  'comment',
  'restart',
  'stop, edit, start',
] as const
type Step = (typeof steps)[number]

/** A record of changes that is wrong in some way. */
type Variant = (record: ConfigChangeStore) => ConfigChangeStore

const right: Variant = (record) => record

/** Records a change when it has taken effect, as a listener of the event would. */
const afterwards: Variant = (record) => ({
  ...record,
  begin: async (change) => ({ ...change, id: 'change_later', instance: '' }),
  toEnd: () => [],
  async end(change, outcome) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    await record.end(await record.begin({ ...change, body: {} }), outcome)
  },
})

/** Records every change as one of the file. */
const nameless: Variant = (record) => ({ ...record, begin: (change) => record.begin({ ...change, principal: 'file' }) })

/** Every change that takes effect is in the record by then, with its author; nothing else is. */
async function expectRecorded(kind: DatabaseKind, taken: readonly Step[], variant: Variant): Promise<void> {
  const place = await placeOn(kind)
  const file = join(place.folder, 'sallyport.yaml')
  await writeFile(file, 'toolsets: {}\n')
  const effects: { readonly by: string; readonly recorded: Promise<string[]> }[] = []
  const [wantedEffects, wantedAuthors]: [string[], string[]] = [[], []]
  let edits = 0
  let running = await start(place, file, variant, (by) => effects.push({ by, recorded: listAuthors() }))
  const { all } = observe(place)

  async function listAuthors(): Promise<string[]> {
    const rows = await all("select principal from audit where kind = 'change' order by at, instance, sequence")
    return rows.map(({ principal }) => String(principal))
  }
  function expectChange(by: string): void {
    wantedEffects.push(by)
    wantedAuthors.push(by)
  }
  /** What is in force, with one more toolset or with a comment. */
  async function edit(comment = ''): Promise<void> {
    const { servers, toolsets } = running.config.current()
    const more = comment === '' ? { [`t${++edits}`]: {} } : {}
    await writeFile(file, `${comment}${JSON.stringify({ servers, toolsets: { ...toolsets, ...more } })}\n`)
  }
  async function change(wanted: ConfigEdit): Promise<void> {
    const before = JSON.stringify(running.config.current().servers)
    await running.config.change(wanted, { by: ada }).catch((error: unknown) => {
      expect(['server-exists', 'server-not-found']).toContain(toGatewayError(error).code)
    })
    if (JSON.stringify(running.config.current().servers) !== before) expectChange('user:ada')
  }
  async function restart(meanwhile: () => Promise<void>): Promise<void> {
    await running.close()
    await meanwhile()
    running = await start(place, file, variant, (by) => effects.push({ by, recorded: listAuthors() }))
  }
  const take: Record<Step, () => Promise<void>> = {
    'add b': () => change(add('b')),
    'add c': () => change(add('c')),
    'remove b': () => change({ kind: 'remove-server', name: 'b' }),
    'enable b': () => change({ kind: 'enable-server', name: 'b', enabled: true }),
    async edit() {
      await edit()
      await running.config.reload()
      expectChange('file')
    },
    async 'edit, add c'() {
      await edit()
      expectChange('file')
      await change(add('c'))
    },
    async comment() {
      await edit(`# ${++edits}\n`)
      await running.config.reload()
    },
    restart: () => restart(async () => {}),
    async 'stop, edit, start'() {
      await restart(edit)
      wantedAuthors.push('file')
    },
  }

  for (const step of taken) await take[step]()
  await running.close()
  const where = `${kind}: ${taken.join('; ')}`
  const recorded = await Promise.all(effects.map((effect) => effect.recorded))
  const authors = effects.map(({ by }) => by)
  expect(authors, where).toEqual(wantedEffects)
  for (const [index, { length }] of recorded.entries()) expect(length, where).toBeGreaterThan(index)
  expect(await listAuthors(), where).toEqual(wantedAuthors)
  expect(await all('select id from config_changes'), where).toEqual([])
}

function add(name: string): ConfigEdit {
  return { kind: 'add-server', name, definition: ServerDefinition.parse(spare) }
}

type Running = { readonly config: ConfigStore; close(): Promise<void> }

/** The configuration on a store of its own; `onEffect` hears of what changes while it runs. */
async function start(place: Place, file: string, variant: Variant, onEffect: (by: string) => void): Promise<Running> {
  const storage = await open(place)
  const events = createEmitter<EventTable>((error) => {
    throw error
  })
  const config = await createConfig({
    file,
    clock: storage.clock,
    log: silentLog,
    environment: {},
    emit: events.emit,
    record: variant(storage.configChanges),
    seal: plainSeal,
    shared: toSharedConfig(storage, false),
  })
  events.on('config-changed', ({ by, changed }) => {
    if (changed.length > 0) onEffect(by)
  })
  return {
    config,
    async close() {
      await config.close()
      await storage.close()
    },
  }
}

const sequences = fc.array(fc.constantFrom(...steps), { minLength: 1, maxLength: 8 })

describe.each(databases)('the record of changes on %s', (kind) => {
  it('has every change that took effect, by then, with its author, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(sequences, (taken) => expectRecorded(kind, taken, right)),
      { numRuns: 12 },
    )
  })

  it.each([
    ['is recorded afterwards', afterwards],
    ['is recorded without its author', nameless],
  ])('would be found wrong if a change %s', async (_, variant) => {
    await expect(expectRecorded(kind, ['add b', 'edit'], variant)).rejects.toThrow()
  })
})
