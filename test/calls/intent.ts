import { expect } from 'vitest'
import type { CallsParts } from '../../src/calls/calls.ts'
import { changeFile, numbersUpTo, type Reader } from '../storage/support.ts'
import { poll } from '../support/gateway.ts'
import { buildRoad, howItWent, inTurns, type Road } from './support.ts'

/** One intent in five is refused by the database, and one in fifty takes its whole transaction along. */
export const failing = `create trigger failing before insert on audit when new.kind = 'intent' begin
  select case when abs(random()) % 50 = 0 then raise(rollback, 'no room') when abs(random()) % 5 = 0 then raise(abort, 'no') end;
end`

/** Looks into the file by itself at the very moment at which a call is handed to its server. */
export function watchSending(onSend: (intents: number) => void) {
  return (parts: CallsParts, reader: Reader): CallsParts => ({
    ...parts,
    servers: {
      ...parts.servers,
      send(permit, caller, events) {
        onSend(reader.all("select call from audit where kind = 'intent' and call = ?", permit.id).length)
        return parts.servers.send(permit, caller, events)
      },
    },
  })
}

/** What reached the server without an intent entry that is older. */
export async function findUnrecorded({ received, reader, storage }: Road): Promise<number[]> {
  // It still fails at random: until one attempt went through, something may be kept back.
  await poll(() =>
    storage.flush().then(
      () => true,
      () => undefined,
    ),
  )
  const intents = new Map(
    reader
      .all("select at, json_extract(body, '$.arguments.n') as n from audit where kind = 'intent'")
      .map(({ n, at }) => [Number(n), Number(at)]),
  )
  const lines = await received()
  return lines.filter(({ n, at }) => !((intents.get(n) ?? Number.POSITIVE_INFINITY) <= at)).map(({ n }) => n)
}

/** Many writing calls while the store fails at random: whatever reached the server was on disk before. */
export async function expectIntentFirst(count: number): Promise<void> {
  const seen: number[] = []
  const road = await buildRoad({ around: watchSending((intents) => seen.push(intents)) })
  changeFile(road.folder, failing)
  const ends: string[] = []
  await inTurns(numbersUpTo(count), 25, async (n) => {
    ends.push(await howItWent(road.call('write_thing', { n })))
    await poll(() => road.storage.healthy() || undefined)
  })

  const refused = ends.filter((end) => end !== 'ok')
  expect(refused.length).toBeGreaterThan(count / 10)
  expect(new Set(refused)).toEqual(new Set(['internal', 'storage-unavailable']))
  const received = await road.received()
  expect(received.length).toBeGreaterThan(count / 10)
  expect(received).toHaveLength(ends.length - refused.length)
  expect(await findUnrecorded(road)).toEqual([])
  expect(seen).toEqual(received.map(() => 1))
  const open = road.reader.all("select id from calls where state = 'running'")
  expect(open).toEqual([])
}
