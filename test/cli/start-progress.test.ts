import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createClient } from '../../src/cli/client/client.ts'
import { showingStart, showingTrial } from '../../src/cli/commands/servers/start-progress.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import { inlineServer } from '../scenarios/servers/support.ts'
import { startTestGateway } from '../support/gateway.ts'

/** A spinner that resolves with the first thing it is told. */
function createSpinner() {
  const { promise, resolve } = Promise.withResolvers<string>()
  return { first: promise, spinner: { update: resolve, stop() {} } }
}

const npx = ServerDefinition.parse({ transport: 'stdio', command: '/usr/bin/npx', args: ['-y', 'x'] })

it('shows that a command which is only tried may be downloading', async () => {
  const { first, spinner } = createSpinner()
  expect(await showingTrial(spinner, npx, () => first)).toMatch(
    /^starting for \d+ s, npx may be downloading the package$/,
  )
})

it('shows what a server does that is being added', async () => {
  const silent = inlineServer('function handle() {}')
  await using gateway = await startTestGateway({ servers: { silent } }, { wait: false })
  const token = (await readFile(join(gateway.folder, 'data', 'admin-token'), 'utf8')).trim()
  const client = createClient({ url: gateway.url, token }, 30_000)
  const { first, spinner } = createSpinner()
  const told = await showingStart({ client, spinner }, { name: 'silent', scope: undefined }, () => first)
  expect(told).toMatch(/^silent: starting for \d+ s$/)
})
