import { expect, it } from 'vitest'
import type { Roster, SessionSettings } from '../../src/config/config.ts'
import type { Principal } from '../../src/contract/principal.ts'
import { ServerPatch } from '../../src/contract/server.ts'
import { createFolder, startStore } from './support.ts'

const notes = ServerPatch.parse({ transport: 'http', url: 'https://notes.example' })
const text = `
servers: { github: { transport: http, url: "https://github.example" } }
users: { anna: { servers: { mine: { transport: http, url: "https://mine.example" } } } }
`

it('has what a session states from the moment it is made until it ends, and the owner’s servers with it', async () => {
  await using folder = await createFolder()
  const file = await folder.write('sallyport.yaml', text)
  let sessions: SessionSettings[] = []
  await using running = await startStore(file, {}, (): Roster => ({ agents: [], sessions }))
  const { store } = running
  const principal: Principal = { kind: 'session', name: 's1', owner: 'anna' }
  const namesOf = () => [...store.effective(principal).servers.keys()]
  const ids = () => store.connections().map(({ id }) => id)
  expect([namesOf(), ids()]).toEqual([
    ['github', 'mine'],
    ['github', 'mine@user:anna'],
  ])

  sessions = [{ name: 's1', owner: 'anna', servers: { notes, github: { enabled: false } }, rules: [] }]
  expect(namesOf()).toEqual(['github', 'mine'])
  store.restate()
  expect(await running.hear('principals-changed')).toEqual({})
  expect(namesOf()).toEqual(['github', 'mine', 'notes'])
  expect(store.effective(principal).servers.get('github')?.definition.enabled).toBe(false)
  expect(ids()).toEqual(['github', 'mine@user:anna', 'notes@session:s1'])

  sessions = []
  store.restate()
  expect([namesOf(), ids()]).toEqual([
    ['github', 'mine'],
    ['github', 'mine@user:anna'],
  ])
})

it('works out what holds for a principal once, until something changes', async () => {
  await using folder = await createFolder()
  const file = await folder.write('sallyport.yaml', text)
  await using running = await startStore(file)
  const { store } = running
  const principal: Principal = { kind: 'agent', name: 'helper', owner: 'anna' }
  const before = store.effective(principal)
  expect(store.effective(principal)).toBe(before)
  expect(store.effective({ ...principal })).toBe(before)
  await folder.write('sallyport.yaml', `${text}naming: "x_{server}_{tool}"\n`)
  await store.reload()
  expect(store.effective(principal)).not.toBe(before)
})

it('knows whose agents and sessions there are, and what their owner works under', async () => {
  await using folder = await createFolder()
  const file = await folder.write(
    'sallyport.yaml',
    `${text}agents: { helper: { rules: [{ action: deny }] } }\nprojects: { shop: {} }\n`,
  )
  const session: SessionSettings = { name: 's1', owner: 'anna', project: 'shop', servers: {}, rules: [] }
  const roster: Roster = { agents: [{ name: 'helper', owner: 'anna' }], sessions: [session] }
  await using running = await startStore(file, {}, () => roster)
  const { store } = running
  expect(store.ownerOf({ kind: 'agent', name: 'helper' })).toBe('anna')
  expect(store.ownerOf({ kind: 'session', name: 's1' })).toBe('anna')
  expect(store.ownerOf({ kind: 'agent', name: 'constructor' })).toBeUndefined()
  expect([...store.usedBy({ kind: 'user', name: 'anna', role: 'member' })].sort()).toEqual([
    'agent:helper',
    'global',
    'project:shop',
    'session:s1',
    'user:anna',
  ])
  expect([...store.usedBy({ kind: 'user', name: 'ben', role: 'member' })]).toEqual(['global', 'user:ben'])
})
