/** A gateway in which a person approves, denies and gives grants, unless it is killed on the way; the next one goes on. */

import type { WantedAnswer } from '../../../src/approvals/approvals.ts'
import type { CallOutcome } from '../../../src/calls/calls.ts'
import type { Approval } from '../../../src/contract/approval.ts'
import { GatewayError } from '../../../src/contract/errors.ts'
import type { Principal } from '../../../src/contract/principal.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { poll } from '../../support/gateway.ts'

const [configFile = '', dataFolder = '', run = '0'] = process.argv.slice(2)
const admin: Principal = { kind: 'user', name: 'admin', role: 'administrator', person: true }
const environment = { ...process.env, SALLYPORT_ADMIN_PASSWORD: 'correct horse battery' }
const passwordCost = { logN: 4, r: 1, p: 1 }
const gateway = await createGateway({ configFile, dataFolder, environment, passwordCost, graceMs: 1000 })
await poll(() => gateway.servers.list().every(({ state }) => state === 'connected') || undefined)

await standingGrant()
const grant = { covers: 'tool', budget: 1, minutes: 600 } as const
await ask('asked', { verdict: 'approve', grant })
await ask('granted', { verdict: 'approve' }) // by the grant, unless a repeated call has spent it
await ask('denied', { verdict: 'deny', reason: 'no' }, 'idempotent_thing')
await call('standing', 'plain_thing')
await gateway.close()

/** For every run the same. */
async function standingGrant(): Promise<void> {
  const { items } = await gateway.grants.list(admin, { limit: 200 })
  if (items.some(({ tools }) => tools === 'files_plain_thing')) return
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString()
  const wanted = { tools: 'files_plain_thing', principal: 'agent:tester', budget: 10_000, expiresAt }
  await gateway.grants.add(admin, wanted)
}

/** Stays until somebody has answered, and answers. */
async function ask(part: string, wanted: WantedAnswer, tool = 'write_thing'): Promise<void> {
  await call(part, tool, ({ id }) => {
    gateway.approvals.answer(admin, id, wanted).catch((error: unknown) => {
      if (!(error instanceof GatewayError) || error.code !== 'approval-answered') throw error
    })
  })
}

function call(part: string, tool: string, onShown?: (approval: Approval) => void): Promise<CallOutcome> {
  return gateway.calls.run(
    {
      principal: { kind: 'agent', name: 'tester' },
      surface: 'library',
      selector: { kind: 'all' },
      name: `files_${tool}`,
      arguments: { run: Number(run), part },
    },
    {
      signal: AbortSignal.timeout(20_000),
      ...(onShown && {
        async present(approval, { settled }) {
          onShown(approval)
          await settled
          return undefined
        },
      }),
    },
  )
}
