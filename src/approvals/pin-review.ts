import type { Catalog } from '../catalog/catalog.ts'
import type { ConfigStore } from '../config/config.ts'
import type { DecidedPin, PinReview } from '../pins/pins.ts'
import type { Storage } from '../storage/storage.ts'
import type { OpenQuestion } from '../storage/tables/questions.ts'
import type { ApprovalStore } from './store.ts'

type ReviewParts = {
  readonly questions: Pick<Storage['questions'], 'openOf'>
  readonly approvalStore: Pick<ApprovalStore, 'withdraw'>
  readonly catalog: Pick<Catalog, 'ofConnection'>
  readonly config: Pick<ConfigStore, 'connections'>
}

export function createPinReview({ questions, approvalStore, catalog, config }: ReviewParts): PinReview {
  return async function review(decided) {
    for (const [server, pins] of Map.groupBy(decided, (pin) => pin.server)) {
      const byTool = new Map(pins.map((pin) => [`${pin.scope} ${pin.name}`, pin]))
      for (const open of await questions.openOf(server)) {
        const pin = scopesOf(open.connection)
          .map((scope) => byTool.get(`${scope} ${open.original}`))
          .find((each) => each !== undefined)
        const why = pin && whyNot(pin, open)
        if (why !== undefined) await approvalStore.withdraw(open.question, why)
      }
    }
  }

  /** The scopes whose pins apply to a connection. */
  function scopesOf(connection: string): string[] {
    const spec = config.connections().find(({ id }) => id === connection)
    return spec?.lineage.map(({ scope }) => scope) ?? []
  }

  function whyNot({ decision, by }: DecidedPin, { question, connection, original }: OpenQuestion): string | undefined {
    if (decision === 'blocked') return `${by} blocked ${question.tool}`
    const tool = catalog.ofConnection(connection).tools.find(({ name }) => name === original)
    // A server that is away lists nothing: its questions are looked at again before they run.
    if (!tool) return undefined
    const isOther = (tool.drift?.live ?? tool).hash !== question.definition
    const isSettled = question.drift !== undefined && tool.drift === undefined
    return isOther || isSettled ? `${by} accepted the change of ${question.tool}: repeat the call` : undefined
  }
}
