import type { RemovalPlan } from '../../contract/removal.ts'
import { toVisible } from '../../shared/visible.ts'
import type { Client } from '../client/client.ts'
import { confirm, talkPaged } from '../terminal/confirm.ts'
import { exit } from '../terminal/exit.ts'
import type { Context } from './command.ts'

type Endpoints = Pick<Client['users' | 'agents' | 'projects'], 'removal' | 'remove'>

type Wanted = { readonly kind: RemovalPlan['kind']; readonly name: string; readonly yes: boolean }

/** Shows what is removed with a user, an agent or a project, asks, and removes it. */
export async function runRemoval({ terminal, request }: Context, { kind, name, yes }: Wanted): Promise<number> {
  const params = { name }
  const endpoints = (client: Client): Endpoints => client[`${kind}s`]
  if (!yes && terminal.interactive) {
    const plan = await request('Listing what belongs to it', (client) => endpoints(client).removal({ params }))
    if (!(await talkPaged(terminal, toText(plan)))) return exit.failed
    if (!(await confirm(terminal, `Remove ${toVisible(name)}?`))) return exit.failed
  }
  const removed = await request(`Removing the ${kind}`, (client) => endpoints(client).remove({ params }))
  terminal.answer(removed, () => [`Removed ${toVisible(name)}.`, ...toLines(removed)].join('\n'))
  return exit.done
}

function toText(plan: RemovalPlan): string {
  if (plan.items.length === 0) return `Nothing else belongs to ${toVisible(plan.name)}.`
  return [`Removed with ${toVisible(plan.name)}:`, ...toLines(plan)].join('\n')
}

function toLines({ items }: RemovalPlan): string[] {
  return items.map(({ noun, name, effect }) => `  ${noun} ${toVisible(name)}${effect ? `: ${effect}` : ''}`)
}
