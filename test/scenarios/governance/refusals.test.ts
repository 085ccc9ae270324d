import { describe, expect, it } from 'vitest'
import { countEveryMs, mostRecorded } from '../../../src/calls/refused.ts'
import type { AuditEntry } from '../../../src/contract/audit.ts'
import { databases, placeOn } from '../../storage/support.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createMovableClock } from '../mcp/clock.ts'
import { call, recordingServer } from './support.ts'

const rules = [
  { action: 'allow' as const },
  { tools: 'files_write_thing', action: 'deny' as const },
  { tools: 'files_destroy_thing', action: 'deny' as const },
]

async function codesOf(gateway: TestGateway, names: readonly string[], as = 'looping'): Promise<string[]> {
  const codes: string[] = []
  for (const name of names) {
    const outcome = await call(gateway, name, { as })
    codes.push(outcome.kind === 'refused' ? outcome.error.code : outcome.kind)
  }
  return codes
}

/** Every entry of the record, oldest first. */
async function entriesOf({ gateway }: TestGateway, principal = 'agent:looping'): Promise<AuditEntry[]> {
  const found: AuditEntry[] = []
  let cursor: string | undefined
  do {
    const page = await gateway.audit.list({ limit: 1000, principal, ...(cursor !== undefined && { cursor }) })
    found.push(...page.items)
    cursor = page.next
  } while (cursor !== undefined)
  return found.reverse()
}

const times = (count: number, name: (index: number) => string) => Array.from({ length: count }, (_each, n) => name(n))
const countsIn = (entries: readonly AuditEntry[]) =>
  entries.filter(({ kind }) => kind === 'refusals').map(({ subject, body }) => [subject, body.code, body.count])

describe.each(databases)('an agent that does not stop, on %s', (kind) => {
  it('is refused each time, while the record has its first refusals and counts of the rest', async () => {
    const place = await placeOn(kind)
    const clock = createMovableClock()
    const { server, received } = recordingServer()
    const config = { servers: { files: server }, rules, limits: { callsPerMinute: 3 } }
    const gateway = await startTestGateway(config, { clock, databaseUrl: place.databaseUrl })
    await using _ = gateway
    /** A gateway on PostgreSQL refuses calls after such a jump, until it has renewed its lease. */
    const later = async () => {
      clock.advance(countEveryMs)
      const probe = () => call(gateway, 'files_structured', { as: 'probe' })
      await poll(
        () =>
          probe().then(
            ({ kind }) => kind,
            () => undefined,
          ),
        20_000,
      )
    }
    const often = 3 * mostRecorded
    const writes = await codesOf(
      gateway,
      times(often, () => 'files_write_thing'),
    )
    expect(new Set(writes)).toEqual(new Set(['call-denied']))
    const unknown = await codesOf(
      gateway,
      times(often, (n) => `no_such_tool_${n}`),
    )
    expect(new Set(unknown)).toEqual(new Set(['tool-not-found']))
    await codesOf(
      gateway,
      times(3, () => 'files_read_thing'),
    )
    const limited = await codesOf(
      gateway,
      times(often, () => 'files_read_thing'),
    )
    expect(new Set(limited)).toEqual(new Set(['limit-exceeded']))
    expect(await received()).toEqual(times(3, () => 'read_thing'))
    // Another tool and another agent have their own first refusals.
    expect(await codesOf(gateway, ['files_destroy_thing'])).toEqual(['call-denied'])
    expect(await codesOf(gateway, ['files_write_thing'], 'other')).toEqual(['call-denied'])

    const refusedRows = async () =>
      (await entriesOf(gateway)).filter(({ kind, body }) => kind === 'outcome' && body.state === 'denied').length
    expect(await refusedRows()).toBe(3 * mostRecorded + 1)
    await later()
    await poll(async () => countsIn(await entriesOf(gateway)).length === 3 || undefined)
    expect(countsIn(await entriesOf(gateway))).toEqual(
      expect.arrayContaining([
        ['files_write_thing', 'call-denied', often - mostRecorded],
        ['unknown names', 'tool-not-found', often - mostRecorded],
        ['files_read_thing', 'limit-exceeded', often - mostRecorded],
      ]),
    )

    // It goes on: nothing is recorded each any more until it has been quiet.
    await codesOf(
      gateway,
      times(7, () => 'files_write_thing'),
    )
    await later()
    await poll(async () => countsIn(await entriesOf(gateway)).length === 4 || undefined)
    expect(countsIn(await entriesOf(gateway)).at(-1)).toEqual(['files_write_thing', 'call-denied', 7])
    await later()
    await later()
    await codesOf(gateway, ['files_write_thing'])
    expect(await refusedRows()).toBe(3 * mostRecorded + 2)
    expect(await gateway.gateway.audit.verify(AbortSignal.timeout(20_000))).toMatchObject({ clean: true })
  })

  it('has its counts in the record when the gateway stops, and no call that cannot be found', async () => {
    const place = await placeOn(kind)
    const { server } = recordingServer()
    const options = { databaseUrl: place.databaseUrl, folder: place.folder }
    const first = await startTestGateway({ servers: { files: server }, rules }, options)
    await codesOf(
      first,
      times(mostRecorded + 30, () => 'files_write_thing'),
    )
    const response = await first.fetch('looping', '/api/tools/files_write_thing/call', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    const { error } = Object(await response.json())
    expect(error).toMatchObject({ code: 'call-denied' })
    expect(error.details?.call).toBeUndefined()
    await first.close()
    await using again = await startTestGateway({ servers: { files: server }, rules }, options)
    const [entry] = (await entriesOf(again)).filter(({ kind }) => kind === 'refusals')
    expect(entry?.body).toMatchObject({ count: 31, code: 'call-denied', server: 'files', method: 'tools/call' })
    expect(Date.parse(String(entry?.body.firstAt))).toBeLessThanOrEqual(Date.parse(String(entry?.body.lastAt)))
    expect(await again.gateway.audit.verify(AbortSignal.timeout(20_000))).toMatchObject({ clean: true })
  })
})
