import type { ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { hiddenMark } from '../lib/secret.ts'
import { hideLiterals, type LiteralPlace, rewrite, toPlaceKey } from '../masking/masking.ts'

type Sent<Definition extends ScopedServer> = {
  readonly name: string
  readonly definition: Definition
  /** The entry that the definition replaces. */
  readonly current: ScopedServer | undefined
}

type Restored<Definition extends ScopedServer> = {
  readonly definition: Definition
  /** The dotted keys of the restored texts. */
  readonly kept: ReadonlySet<string>
}

/**
 * Answers show `[secret]` for a secret that is written in the configuration. A text that comes back unchanged means the
 * stored text. A hidden value never goes to another address or program than before.
 */
export function restoreHidden<Definition extends ScopedServer>(sent: Sent<Definition>): Restored<Definition> {
  const { name, definition, current = {} } = sent
  const kept = new Set<string>()
  const stored = listTexts(current)
  const shown = listTexts(hideLiterals(name, current))
  const restored = rewrite(definition, (place, text) => {
    if (!text.includes(hiddenMark)) return text
    const key = toPlaceKey(place)
    const from = findStored(shown, place, text)
    const original = from === undefined ? undefined : stored.get(from)
    if (original === undefined) throw notStored(key)
    kept.add(key)
    return original
  })
  const [key] = kept
  if (key !== undefined && !isSameTarget(current, restored)) throw movedAway(key)
  return { definition: restored, kept }
}

function listTexts(entry: ScopedServer): Map<string, string> {
  const texts = new Map<string, string>()
  rewrite(entry, (place, text) => {
    texts.set(toPlaceKey(place), text)
    return text
  })
  return texts
}

/** Arguments may have moved, as long as only one of them has this text. */
function findStored(shown: ReadonlyMap<string, string>, place: LiteralPlace, text: string): string | undefined {
  const key = toPlaceKey(place)
  if (shown.get(key) === text) return key
  if (place.field !== 'args') return undefined
  const equal = [...shown].filter(([other, otherText]) => other.startsWith('args.') && otherText === text)
  return equal.length === 1 ? equal[0]?.[0] : undefined
}

function isSameTarget(current: ScopedServer, wanted: ScopedServer): boolean {
  const fields = ['transport', 'url', 'command'] as const
  return fields.every((field) => current[field] === wanted[field]) && hostOf(current) === hostOf(wanted)
}

/** One address may serve several hosts. */
function hostOf({ headers = {} }: ScopedServer): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'host')?.[1]
}

function notStored(key: string): GatewayError {
  const message = `${key} contains ${hiddenMark}, which only stands for a stored value that answers do not show`
  return new GatewayError('request-invalid', `${message}: write the value or \${NAME}, or leave the text unchanged`, {
    key,
  })
}

function movedAway(key: string): GatewayError {
  const message = `The hidden value of ${key} is only used with the address or program that it was stored for`
  return new GatewayError('request-invalid', `${message}: write the value again, or \${NAME}`, { key })
}
