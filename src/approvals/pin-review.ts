import type { Catalog } from '../catalog/catalog.ts'
import type { ConfigStore } from '../config/config.ts'
import type { DecidedPin, PinReview } from '../pins/pins.ts'
import type { Storage } from '../storage/storage.ts'
import type { OpenApproval } from '../storage/tables/approvals.ts'
import type { ApprovalStore } from './store.ts'

type ReviewParts = {
  readonly approvals: Pick<Storage['approvals'], 'openOf'>
  readonly approvalStore: Pick<ApprovalStore, 'withdraw'>
  readonly catalog: Pick<Catalog, 'ofConnection'>
  readonly config: Pick<ConfigStore, 'connections'>
}

export function createPinReview({ approvals, approvalStore, catalog, config }: ReviewParts): PinReview {
  return async function review(decided) {
    for (const [server, pins] of Map.groupBy(decided, (pin) => pin.server)) {
      const byTool = new Map(pins.map((pin) => [`${pin.scope} ${pin.name}`, pin]))
      for (const open of await approvals.openOf(server)) {
        const pin = scopesOf(open.connection)
          .map((scope) => byTool.get(`${scope} ${open.original}`))
          .find((each) => each !== undefined)
        const why = pin && whyNot(pin, open)
        if (why !== undefined) await approvalStore.withdraw(open.approval, why)
      }
    }
  }

  /** The scopes whose pins apply to a connection. */
  function scopesOf(connection: string): string[] {
    const spec = config.connections().find(({ id }) => id === connection)
    return spec?.lineage.map(({ scope }) => scope) ?? []
  }

  function whyNot({ decision, by }: DecidedPin, { approval, connection, original }: OpenApproval): string | undefined {
    if (decision === 'blocked') return `${by} blocked ${approval.tool}`
    const tool = catalog.ofConnection(connection).tools.find(({ name }) => name === original)
    // A disconnected server lists nothing. Its approved calls are checked again before they run.
    if (!tool) return undefined
    const isOther = (tool.drift?.live ?? tool).hash !== approval.definition
    const isSettled = approval.drift !== undefined && tool.drift === undefined
    return isOther || isSettled
      ? `${by} accepted the changed definition of ${approval.tool}: repeat the call`
      : undefined
  }
}
