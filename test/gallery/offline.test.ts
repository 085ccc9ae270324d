import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { installed, start, startable } from './starting.ts'

const modules = join(import.meta.dirname, '../../node_modules')
let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({})
  return () => gateway.close()
})

it.each(startable.filter(({ label }) => installed.has(label)))(
  'the entry $label starts offline and lists its tools',
  async (found) => {
    const { ok, failure, tools, setAside } = await start(gateway, found, modules)
    expect({ ok, failure, tools: tools.length + setAside.length }).toEqual({
      ok: true,
      failure: undefined,
      tools: found.started.tools,
    })
  },
)
