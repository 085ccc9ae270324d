import { beforeAll, expect, it } from 'vitest'
import { installOnDemand, onDemandPath } from '../../scripts/on-demand.ts'
import { installed, start, startable } from '../gallery/starting.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({})
  return () => gateway.close()
})

it.each(startable.filter(({ label }) => !installed.has(label)))(
  'the entry $label starts offline and lists its tools',
  async (found) => {
    await installOnDemand(found.wanted)
    const { ok, failure, tools, setAside } = await start(gateway, found, onDemandPath(found.wanted))
    expect({ ok, failure, tools: tools.length + setAside.length }).toEqual({
      ok: true,
      failure: undefined,
      tools: found.started.tools,
    })
    const names = new Set([...tools.map(({ original }) => original), ...setAside.map(({ name }) => name)])
    expect(Object.keys(found.entry.risk.tools).filter((name) => !names.has(name))).toEqual([])
  },
)
