/** A gateway whose server is down when an approved call is sent, and up when it is made again, unless it is killed. */
import type { CallOutcome } from '../../../src/calls/calls.ts'
import type { Approval } from '../../../src/contract/approval.ts'
import type { Principal } from '../../../src/contract/principal.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { poll, quickSupervision } from '../../support/gateway.ts'

const [configFile = '', dataFolder = '', control = ''] = process.argv.slice(2)
const admin: Principal = { kind: 'user', name: 'admin', role: 'administrator', person: true }
const gateway = await createGateway({
  configFile,
  dataFolder,
  environment: { ...process.env, SALLYPORT_ADMIN_PASSWORD: 'correct horse battery' },
  passwordCost: { logN: 4, r: 1, p: 1 },
  supervision: quickSupervision,
  graceMs: 1000,
})
await connected()
const first = await call(async ({ id }) => {
  await fetch(`${control}/pause`)
  await gateway.approvals.answer(admin, id, { verdict: 'approve' })
})
if (first.kind !== 'answered') {
  await fetch(`${control}/resume`)
  await connected()
  await call(({ id }) => gateway.approvals.answer(admin, id, { verdict: 'approve' }))
}
await gateway.close()

async function connected(): Promise<void> {
  await poll(() => gateway.servers.list().every(({ state }) => state === 'connected') || undefined)
}

/** Stays until somebody has answered. */
function call(onShown: (approval: Approval) => Promise<unknown>): Promise<CallOutcome> {
  return gateway.calls.run(
    {
      principal: { kind: 'agent', name: 'tester' },
      surface: 'library',
      selector: { kind: 'all' },
      name: 'files_write_thing',
      arguments: { n: 1 },
    },
    {
      signal: AbortSignal.timeout(20_000),
      async present(approval, { settled }) {
        await onShown(approval)
        await settled
        return undefined
      },
    },
  )
}
