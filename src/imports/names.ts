import { ServerName, ServerTitle } from '../contract/server.ts'

const longest = 64

/** A name that is allowed for servers and agents: `Team Search` becomes `Team-Search`. */
export function toName(text: string, fallback = 'server'): string {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|[-._]+$/g, '')
    .slice(0, longest)
  return plain === '' ? fallback : plain
}

/** The name as people wrote it, without characters that would break or reorder the text around it. */
export function toTitle(text: string): string | undefined {
  const tidy = text
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '')
    .trim()
    .slice(0, 128)
    .trim()
  return ServerTitle.safeParse(tidy).data
}

/**
 * One valid name for each text. A text that is a valid name keeps it; other texts, and texts that occur again, get a
 * suffix if their name is taken.
 */
export function assignNames(texts: readonly string[], fallback?: string): string[] {
  const taken = new Set<string>()
  const names = new Map<number, string>()
  const isFree = (name: string) => !taken.has(name) && ServerName.safeParse(name).success
  for (const [index, text] of texts.entries()) {
    if (!isFree(text)) continue
    names.set(index, text)
    taken.add(text)
  }
  const next = new Map<string, number>()
  return texts.map((text, index) => {
    const own = names.get(index)
    if (own !== undefined) return own
    const base = toName(text, fallback)
    let suffix = next.get(base) ?? 1
    let name = base
    while (!isFree(name)) {
      suffix += 1
      const end = `-${suffix}`
      name = base.slice(0, longest - end.length) + end
    }
    next.set(base, suffix)
    taken.add(name)
    return name
  })
}
