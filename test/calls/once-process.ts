/** A gateway that makes one call with a key, tells how it went and stops, unless it is killed on the way. */
import { createGateway } from '../../src/gateway/gateway.ts'
import { poll } from '../support/gateway.ts'

const [configFile = '', dataFolder = '', n = '0'] = process.argv.slice(2)
const gateway = await createGateway({ configFile, dataFolder, graceMs: 1000 })
await poll(() => gateway.servers.list().every(({ state }) => state === 'connected') || undefined)
const outcome = await gateway.calls.run(
  {
    principal: { kind: 'agent', name: 'tester' },
    surface: 'library',
    selector: { kind: 'all' },
    name: 'files_write_thing',
    arguments: { n: Number(n) },
    key: `key ${n}`,
  },
  { signal: AbortSignal.timeout(20_000) },
)
const told =
  outcome.kind === 'refused' ? outcome.error.code : outcome.kind === 'answered' && outcome.replayed ? 'replayed' : 'run'
await gateway.close()
process.stdout.write(told)
