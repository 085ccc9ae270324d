import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Gateway } from '../../../src/gateway/gateway.ts'
import { databases } from '../../storage/support.ts'
import { runToCrash } from '../../support/crash.ts'
import { programPath } from '../../support/programs.ts'
import { type ChangeStage, createChangeStage, listAuthors, listChanges } from './stage.ts'

const program = programPath('test/scenarios/changes/crashing-gateway')

function liveOnce({ file, place }: ChangeStage, run: number, crashAt: string): Promise<string> {
  const data = join(place.folder, 'data')
  return runToCrash(program, [file, data, place.databaseUrl ?? '', String(run)], crashAt)
}

/** What is in force was recorded by whoever made it, and what was recorded as applied is in force. */
async function expectTrueRecord(gateway: Gateway, where: string): Promise<void> {
  const authors = await listAuthors(gateway)
  expect(
    authors.filter((line) => line.endsWith(' open')),
    where,
  ).toEqual([])
  const { servers, toolsets, rules } = gateway.config.current()
  const applied = authors.filter((line) => line.endsWith(' applied'))
  for (const name of Object.keys(servers)) expect(applied, where).toContain(`user:ada server:${name} applied`)
  for (const line of applied) {
    const [, name] = /^user:ada server:(\S+) applied$/.exec(line) ?? []
    if (name !== undefined) expect(Object.keys(servers), where).toContain(name)
  }
  const edited = (await listChanges(gateway))
    .filter(({ kind, principal }) => kind === 'change' && principal === 'file')
    .flatMap(({ body }) => [body.changed].flat())
  expect(new Set(edited), where).toEqual(new Set(Object.keys(toolsets).map((name) => `toolsets.${name}`)))
  if (rules.length > 0) expect(applied, where).toContain('user:ada rules:global applied')
  expect(await gateway.audit.verify(AbortSignal.timeout(20_000)), where).toMatchObject({ clean: true })
}

describe.each(databases)('a change of the configuration on %s', (kind) => {
  it('has its author and its outcome in the record wherever the gateway is killed', async () => {
    const stage = await createChangeStage(kind, 'sallyport.json')
    const points: string[] = []
    for (let number = 1; points.at(-1) !== 'ended'; number++) {
      points.push(await liveOnce(stage, number, String(number)))
      const gateway = await stage.start()
      await expectTrueRecord(gateway, `killed at ${number}: ${points.at(-1)}`)
      await gateway.close()
    }
    const reached = points.filter((point) => point.startsWith('a change is'))
    expect(new Set(reached)).toEqual(new Set(['a change is recorded, not saved', 'a change is saved, not applied']))
    expect(reached.length).toBeGreaterThan(3)
  })
})
