import { expect, it, onTestFinished } from 'vitest'
import { createNames, type Names, type NamesParts, type WantedName } from '../../src/catalog/names.ts'
import { connections, toSettings } from '../../src/config/config.ts'
import { Config } from '../../src/contract/config.ts'
import { GatewayError } from '../../src/contract/errors.ts'
import { globalScope } from '../../src/contract/scope.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { Storage } from '../../src/storage/storage.ts'
import type { StoredName } from '../../src/storage/tables/tool-names.ts'
import { open, type Place, placeOn, temporaryFolder } from '../storage/support.ts'
import { poll } from '../support/gateway.ts'

type ToolNames = NamesParts['storage']['toolNames']

/** A configuration of administrators with these servers. */
function configOf(servers: readonly string[]): NamesParts['config'] {
  const definition = { transport: 'http', url: 'http://127.0.0.1:1/mcp' }
  const config = Config.parse({ servers: Object.fromEntries(servers.map((name) => [name, definition])) })
  const specs = connections(toSettings(config, { agents: [], sessions: [] }))
  return {
    current: () => config,
    connections: () => specs,
    scopes: () => [globalScope],
    statedIn: () => ({ servers: config.servers, rules: config.rules }),
    trusts: () => true,
  }
}

async function start(storage: Storage, servers: readonly string[], toolNames: ToolNames = storage.toolNames) {
  const { grants, pins, changes } = storage
  let changed = 0
  const names = await createNames({
    storage: { grants, pins, changes, toolNames },
    config: configOf(servers),
    findUserId: () => undefined,
    clock: systemClock,
    log: silentLog,
    onChange() {
      changed++
    },
  })
  onTestFinished(names.close)
  return { ...names, changed: () => changed }
}

function toWanted(server: string, tool: string): WantedName {
  return { server: { name: server, lineage: [{ scope: 'global', pinning: undefined }] }, tool, wanted: tool }
}

const rounds = 20
const servers = ['a', 'a_b', 'a_b_c']
/** Tools of three servers that want one name, and its number. */
const rivals = (round: number): WantedName[] => [
  toWanted('a', `b_c_${round}`),
  toWanted('a_b', `c_${round}`),
  toWanted('a_b_c', `${round}`),
]

/** Three instances assign the same names at the same time, each for another tool first. Says what each of them uses. */
async function race(place: Place, toStore: (storage: Storage) => ToolNames): Promise<Map<string, Set<string>>> {
  const instances: Names[] = []
  for (let index = 0; index < 3; index++) {
    const storage = await open(place)
    instances.push(await start(storage, servers, toStore(storage)))
  }
  const firsts = instances.map((instance, index) => () => {
    const first = Array.from({ length: rounds }, (_, round) => rivals(round).slice(index, index + 1))
    return Promise.all(first.map((wanted) => instance.assign(wanted)))
  })
  await Promise.all(firsts.map((run) => run()))
  const all = Array.from({ length: rounds }, (_, round) => rivals(round)).flat()
  await Promise.all(instances.map((instance) => instance.assign(all)))
  const owners = new Map<string, Set<string>>()
  for (const { find } of instances) {
    for (const wanted of all) {
      const name = find(wanted) ?? 'none'
      owners.set(name, (owners.get(name) ?? new Set()).add(`${wanted.server.name}/${wanted.tool}`))
    }
  }
  return owners
}

it('gives each name to one tool on every instance, whoever is first', async () => {
  const owners = await race(await placeOn('PostgreSQL'), (storage) => storage.toolNames)
  expect(owners.size).toBe(rounds * rivals(0).length)
  expect([...owners.values()].filter((tools) => tools.size !== 1)).toEqual([])
})

it('would not if an instance read first and wrote later', async () => {
  const owners = await race(await placeOn('PostgreSQL'), ({ toolNames }) => {
    const own: StoredName[] = []
    return {
      ...toolNames,
      all: async () => own,
      async assign(names) {
        own.push(...names)
        return 'done'
      },
    }
  })
  expect([...owners.values()].some((tools) => tools.size > 1)).toBe(true)
})

it('offers no name that is not stored, and stores it when the database can be written again', async () => {
  const storage = await open(temporaryFolder())
  let broken = true
  const toolNames: ToolNames = {
    ...storage.toolNames,
    async assign(...given) {
      if (broken) throw new GatewayError('storage-unavailable', 'The disk is full')
      return storage.toolNames.assign(...given)
    },
  }
  const names = await start(storage, servers, toolNames)
  const wanted = toWanted('a', 'b')
  await names.assign([wanted])
  expect(names.find(wanted)).toBeUndefined()
  broken = false
  await poll(() => names.find(wanted))
  expect(names.find(wanted)).toBe('a_b')
  await poll(() => names.changed() || undefined)
})

it('keeps the names of a removed server for its return while its pins exist, and gives them away afterwards', async () => {
  const storage = await open(temporaryFolder())
  const change = { principal: 'gateway', subject: 'pins:a_b', body: {} }
  const accepted = { hash: 'x', text: '{}' }
  await storage.pins.addBaseline(
    [
      {
        server: 'a_b',
        scope: 'global',
        kind: 'tool',
        name: 'c',
        state: 'accepted',
        accepted,
        baseline: true,
        decidedBy: undefined,
        byAdministrator: false,
        decidedAt: 0,
        seen: undefined,
      },
    ],
    change,
  )
  const first = await start(storage, ['a_b'])
  await first.assign([toWanted('a_b', 'c')])
  expect(first.find(toWanted('a_b', 'c'))).toBe('a_b_c')
  const second = await start(storage, ['a'])
  await second.assign([toWanted('a', 'b_c')])
  expect(second.find(toWanted('a', 'b_c'))).toMatch(/^a_b_c_0/)
  const returned = await start(storage, ['a', 'a_b'])
  expect(returned.find(toWanted('a_b', 'c'))).toBe('a_b_c')
  await storage.pins.forget('a_b', 'global', change)
  const third = await start(storage, ['a'])
  await third.assign([toWanted('a', 'a_b_c')])
  expect(third.find(toWanted('a', 'a_b_c'))).toBe('a_b_c')
  const { items } = await storage.audit.list({ limit: 5, kind: 'change' })
  expect(items.filter(({ subject }) => subject === 'names')).toMatchObject([{ principal: 'gateway' }])
})
