import type { JsonObject } from '../contract/json.ts'
import type { Principal } from '../contract/principal.ts'
import { isObject } from '../lib/json.ts'
import type { Servers } from '../servers/servers.ts'
import type { Catalog } from './catalog.ts'
import type { ViewSelector } from './view.ts'

/** The instructions and capabilities that a client gets when it connects to an address. */
export type Introduction = {
  readonly instructions?: string
  readonly extensions?: JsonObject
  /** At least one server supports tasks of the older protocol generation. */
  readonly tasks?: boolean
}

/** Sentences about missing setup steps. The agent can pass them on to its user. */
function listMissing(servers: number, hasAdministrator: boolean): string[] {
  const missing: string[] = []
  if (servers === 0)
    missing.push(
      'This Sallyport gateway has no MCP servers for you yet, so it offers no tools. Tell the user to add one with `sallyport servers add NAME -- COMMAND` or `sallyport servers add NAME --url URL`.',
    )
  if (!hasAdministrator)
    missing.push(
      'This Sallyport gateway has no administrator yet, so nobody can approve a call that needs approval. Tell the user to run `sallyport setup-link` and to open the link that it prints.',
    )
  return missing
}

/** Limits, because every agent gets the instructions of all its servers when it connects. */
const maxInstructions = 8192
const maxAlone = 64 * 1024
const maxExtensions = 64
const maxExtensionBytes = 4096

export function createIntroduction(parts: {
  catalog: Pick<Catalog, 'view' | 'ofConnection'>
  servers: Pick<Servers, 'facts'>
  /** Whether an administrator exists who can sign in and answer approvals. */
  hasAdministrator(): boolean
}) {
  return (principal: Principal, selector: ViewSelector): Introduction => {
    const { servers } = parts.catalog.view(principal, selector)
    const known = servers.flatMap(({ name, connection }) => {
      const facts = parts.servers.facts(connection)
      return facts ? [{ name, facts, instructions: parts.catalog.ofConnection(connection).instructions }] : []
    })
    const texts = known.flatMap(({ name, instructions }) => {
      if (!instructions) return []
      if (selector.kind === 'server') return [instructions.slice(0, maxAlone)]
      return [`## ${name}\n\n${instructions.slice(0, maxInstructions)}`]
    })
    if (selector.kind === 'all') texts.unshift(...listMissing(servers.length, parts.hasAdministrator()))
    const extensions = known.flatMap(({ facts }) => {
      const offered = facts.capabilities.extensions
      const entries = isObject(offered) ? Object.entries(offered).slice(0, maxExtensions) : []
      return entries.filter((entry) => JSON.stringify(entry).length <= maxExtensionBytes)
    })
    return {
      ...(texts.length > 0 && { instructions: texts.join('\n\n') }),
      ...(extensions.length > 0 && { extensions: Object.fromEntries(extensions) }),
      ...(known.some(({ facts }) => facts.era === 'legacy' && isObject(facts.capabilities.tasks)) && { tasks: true }),
    }
  }
}
