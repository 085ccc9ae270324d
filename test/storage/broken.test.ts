import type { Worker } from 'node:worker_threads'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { Storage } from '../../src/storage/storage.ts'
import { callOf, changeFile, endOf, numbersUpTo, open, readerOf, sequencesOf, temporaryFolder } from './support.ts'

const patiently = { timeout: 20_000, interval: 20 }
const filler = { tool: 'filler', arguments: { text: 'x'.repeat(20_000) } }

async function fill(storage: Storage): Promise<unknown> {
  while (true) {
    try {
      await storage.claim(callOf('write', filler))
    } catch (error) {
      return error
    }
  }
}

it('refuses every call while the database is full, and goes on by itself when there is room again', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder, { maxPages: 400 })
  const running = await storage.claim(callOf('write'))
  const reading = await storage.claim(callOf('read'))
  expect(await fill(storage)).toMatchObject({ code: 'storage-unavailable' })

  expect(storage.healthy()).toBe(false)
  await expect(storage.claim(callOf('write'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  await expect(storage.claim(callOf('read'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  await expect(storage.audit.append({ principal: 'user:a', subject: 'b', body: {} })).rejects.toMatchObject({
    code: 'storage-unavailable',
  })
  await expect(storage.flush()).rejects.toMatchObject({ code: 'storage-unavailable' })
  storage.finish(running, endOf('ok'))
  storage.finish(reading, endOf('ok'))
  expect(await storage.calls.find(running.id)).toMatchObject({ state: 'running' })

  changeFile(folder, "delete from calls where tool = 'filler'", "delete from audit where subject = 'filler'")
  await vi.waitFor(() => expect(storage.healthy()).toBe(true), patiently)
  await storage.claim(callOf('write'))
  await storage.flush()
  const reader = readerOf(folder)
  expect([reader.state(running.id), reader.state(reading.id)]).toEqual(['ok', 'ok'])
  expect(reader.all("select call from audit where kind = 'outcome' order by call").map(({ call }) => call)).toEqual(
    [running.id, reading.id].toSorted(),
  )
})

it('leaves nothing of a claim that did not fit', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder, { maxPages: 400 })
  await fill(storage)
  const reader = readerOf(folder)
  const [{ calls } = {}] = reader.all('select count(*) as calls from calls')
  expect(sequencesOf(reader, storage.instance)).toEqual(numbersUpTo(Number(calls)))
})

it('closes in time although the database is full', async () => {
  const storage = await open(temporaryFolder(), { maxPages: 400 })
  const permit = await storage.claim(callOf('write'))
  await fill(storage)
  storage.finish(permit, endOf('ok'))
  await storage.close()
})

it('refuses more calls than it can hold, and loses none of those that it let through', async () => {
  const folder = temporaryFolder()
  const storage = await open(folder)
  const permitted: string[] = []
  const refused: unknown[] = []
  // Without a pause: the thread cannot keep up with a caller that never waits.
  for (let count = 0; count < 25_000; count++) {
    const call = callOf('read')
    await storage.claim(call).then(
      (permit) => {
        storage.finish(permit, endOf('ok'))
        permitted.push(call.id)
      },
      (error) => refused.push(error.code),
    )
  }
  expect(refused.length).toBeGreaterThan(0)
  expect(new Set(refused)).toEqual(new Set(['storage-unavailable']))
  await vi.waitFor(async () => await storage.claim(callOf('write')), patiently)
  await storage.close()
  const written = new Set(
    readerOf(folder)
      .all("select id from calls where state = 'ok'")
      .map(({ id }) => id),
  )
  expect(permitted.filter((id) => !written.has(id))).toEqual([])
})

async function openWithWorker(folder: string): Promise<{ storage: Storage; worker: Worker }> {
  const started = Promise.withResolvers<Worker>()
  process.once('worker', started.resolve)
  onTestFinished(() => void process.off('worker', started.resolve))
  const storage = await open(folder)
  return { storage, worker: await started.promise }
}

it('refuses every call when the thread that owns the file has died, and starts another', async () => {
  const folder = temporaryFolder()
  const { storage, worker } = await openWithWorker(folder)
  const running = await storage.claim(callOf('write'))
  await worker.terminate()
  await vi.waitFor(() => expect(storage.healthy()).toBe(false), patiently)
  await expect(storage.claim(callOf('write'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  await expect(storage.claim(callOf('read'))).rejects.toMatchObject({ code: 'storage-unavailable' })
  storage.finish(running, endOf('ok'))

  await vi.waitFor(() => expect(storage.healthy()).toBe(true), patiently)
  await storage.claim(callOf('write'))
  await storage.flush()
  const reader = readerOf(folder)
  expect(reader.state(running.id)).toBe('ok')
  expect(sequencesOf(reader, storage.instance)).toEqual([1, 2, 3])
})

it('leaves no call open whose commit the thread took with it', async () => {
  const folder = temporaryFolder()
  const { storage, worker } = await openWithWorker(folder)
  const claims = Array.from({ length: 500 }, () => callOf('write'))
  const claiming = Promise.allSettled(claims.map((call) => storage.claim(call)))
  await new Promise(setImmediate)
  await worker.terminate()
  const results = await claiming
  await vi.waitFor(() => expect(storage.healthy()).toBe(true), patiently)
  await storage.flush()
  const reader = readerOf(folder)
  const permitted = claims.filter((_, index) => results[index]?.status === 'fulfilled').map(({ id }) => id)
  const running = reader.all("select id from calls where state = 'running'").map(({ id }) => id)
  expect(running.toSorted()).toEqual(permitted.toSorted())
  const entries = sequencesOf(reader, storage.instance)
  expect(entries).toEqual(numbersUpTo(entries.length))
})
