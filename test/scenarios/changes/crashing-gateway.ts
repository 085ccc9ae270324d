/** A gateway whose configuration is changed by a person and by edits of the file, unless it is killed on the way. */
import { writeFile } from 'node:fs/promises'
import { Rule } from '../../../src/contract/rule.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { ada, key, spare } from './people.ts'

const [configFile = '', dataFolder = '', databaseUrl = '', run = ''] = process.argv.slice(2)
const gateway = await createGateway({
  configFile,
  dataFolder,
  databaseUrl: databaseUrl || undefined,
  environment: { ...process.env, SALLYPORT_KEY: key },
  graceMs: 100,
})
await gateway.servers.add(ada, { name: `spare-${run}`, definition: spare })
// The whole of it: with PostgreSQL the file does not have what a person changed.
const { limits, servers, rules, toolsets } = gateway.config.current()
await writeFile(configFile, JSON.stringify({ limits, servers, rules, toolsets: { ...toolsets, [`edit-${run}`]: {} } }))
await gateway.config.reload()
await gateway.rules.set(ada, 'global', [Rule.parse({ tools: '*', action: 'deny', reason: `run ${run}` })])
await gateway.close()
