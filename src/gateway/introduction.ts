import type { Catalog, ViewSelector } from '../catalog/catalog.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Principal } from '../contract/principal.ts'
import { isObject } from '../lib/json.ts'
import type { Servers } from '../servers/servers.ts'

/** What the servers behind one address say of themselves, for whoever comes to it. */
export type Introduction = {
  readonly instructions?: string
  readonly extensions?: JsonObject
  /** One of them has tasks of the older era. */
  readonly tasks?: boolean
}

const maxInstructions = 8192

export function createIntroduction(parts: { catalog: Pick<Catalog, 'view'>; servers: Pick<Servers, 'facts'> }) {
  return (principal: Principal, selector: ViewSelector): Introduction => {
    const { servers } = parts.catalog.view(principal, selector)
    const known = servers.flatMap(({ name, connection }) => {
      const facts = parts.servers.facts(connection)
      return facts ? [{ name, facts }] : []
    })
    const texts = known.flatMap(({ name, facts: { instructions } }) => {
      if (!instructions) return []
      return selector.kind === 'server' ? [instructions] : [`## ${name}\n\n${instructions.slice(0, maxInstructions)}`]
    })
    const extensions = known.flatMap(({ facts }) => {
      const offered = facts.capabilities.extensions
      return isObject(offered) ? Object.entries(offered) : []
    })
    return {
      ...(texts.length > 0 && { instructions: texts.join('\n\n') }),
      ...(extensions.length > 0 && { extensions: Object.fromEntries(extensions) }),
      ...(known.some(({ facts }) => facts.era === 'legacy' && isObject(facts.capabilities.tasks)) && { tasks: true }),
    }
  }
}
