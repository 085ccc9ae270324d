import { startGateway } from '../../../src/http/serve.ts'
import { poll } from '../../support/gateway.ts'

/** A gateway in a process of its own, for tests that kill it: says which process groups it started. */
const [configFile, dataFolder = ''] = process.argv.slice(2)
const { gateway } = await startGateway({ configFile, dataFolder, port: 0 })
await poll(() => gateway.servers.list().every(({ state }) => state === 'connected') || undefined, 30_000)
process.stdout.write(`connected ${gateway.instance}\n`)
