import type { ConfigStore } from '../config/config.ts'
import type { Rule } from '../contract/rule.ts'
import { toScopeKey } from '../contract/scope.ts'
import { matchesAny } from '../lib/glob.ts'
import type { Storage } from '../storage/storage.ts'
import type { NameClaims } from './name-table.ts'

type ClaimsParts = {
  readonly storage: Pick<Storage, 'grants' | 'pins'>
  readonly config: Pick<ConfigStore, 'current' | 'scopes' | 'statedIn' | 'trusts'>
  /** Space and name of every configured server. */
  readonly configured: ReadonlySet<string>
}

/** The claims, and whether one of them depends on the pins, which are read only if they matter. */
type ReadClaims = NameClaims & { needsPins(): boolean }

/** Everything that refers to public names: rules, grants and toolsets by name, pins by server and tool. */
export async function readClaims(parts: ClaimsParts, withPins = false): Promise<ReadClaims> {
  const { storage, config, configured } = parts
  const scopes = config.scopes().map((scope) => ({ key: toScopeKey(scope), rules: config.statedIn(scope).rules }))
  const rules = scopes.flatMap((scope) => scope.rules)
  const trusted = scopes.filter(({ key }) => config.trusts(key)).flatMap((scope) => scope.rules)
  const granted = (await storage.grants.active()).map(({ tools }) => tools)
  const toolsets = Object.values(config.current().toolsets).flatMap(({ tools }) => tools)
  const exact = new Set(
    [...trusted.filter(loosens).flatMap(({ tools }) => tools), ...granted].filter((pattern) => !/[*?]/.test(pattern)),
  )
  const patterns = [...new Set([...rules.flatMap(({ tools }) => tools), ...granted, ...toolsets])].filter((text) =>
    /[^*]/.test(text),
  )
  const pins = withPins ? await storage.pins.all() : []
  const pinned = new Set(pins.map(({ server, name }) => `${server} ${name}`))
  let needsPins = false

  const isNamed = (name: string) => matchesAny(patterns, name)
  return {
    isNamed,
    isNamedExactly: (name) => exact.has(name),
    isHeld({ space, server, tool, name }) {
      if (configured.has(`${space} ${server}`) || isNamed(name) || pinned.has(`${server} ${tool}`)) return true
      needsPins ||= !withPins
      return !withPins
    },
    needsPins: () => needsPins,
  }
}

/** A rule that denies or asks may match further tools: then it protects them too. */
function loosens({ action, approvers }: Rule): boolean {
  return action === 'allow' || approvers === 'client' || approvers.startsWith('group:')
}
