import { z } from 'zod'
import type { GalleryVariable } from '../contract/gallery.ts'
import { demandHarmlessVariable, Unsupported } from './registry-checks.ts'

/** A value that the registry describes: fixed, or to be asked for. */
const Plain = z.object({
  description: z.string().max(4096).optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  default: z.string().max(2048).optional(),
  value: z.string().max(2048).optional(),
})
export const Input = Plain.extend({ variables: z.record(z.string().max(64), Plain).optional() })
export type Input = z.infer<typeof Input>
type Inputs = Readonly<Record<string, z.infer<typeof Plain>>>
type NamedInput = Input & { readonly name: string }

/**
 * Converts the texts of one server of a registry, and collects the variables that they need. The names of the variables
 * begin with the name of the server, so that they are never the names of other secrets.
 */
export function createTexts(server: string) {
  const found = new Map<string, GalleryVariable>()
  const prefix = server.toUpperCase().replace(/[^A-Z0-9]+/g, '_')

  return { variables: () => [...found.values()], environment, named, argument, address }

  function environment(name: string): string {
    demandHarmlessVariable(name)
    return name
  }

  /** The text of a header or an environment variable. */
  function named(input: NamedInput): string {
    return input.value === undefined ? ask(input.name, input) : substitute(input.value, input.variables ?? {})
  }

  /** A named argument is one word, so that its value is never read as another option. */
  function argument(input: Input & { type: 'named' | 'positional'; name?: string; valueHint?: string }): string[] {
    const label = input.name ?? input.valueHint ?? 'argument'
    const text = input.value === undefined ? ask(label, input) : substitute(input.value, input.variables ?? {})
    if ([...found.values()].some(({ name, secret }) => secret && text.includes(`\${${name}}`)))
      throw new Unsupported('it needs a secret in its arguments, where other users of the machine can see it')
    if (input.type === 'positional') {
      if (text.startsWith('-')) throw new Unsupported('a positional argument begins with -')
      return [text]
    }
    const { name = '' } = input
    if (!/^--?[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name)) throw new Unsupported('the name of an argument is not allowed')
    return [`${name}=${text}`]
  }

  function address(text: string, variables: Inputs): string {
    const required = Object.entries(variables).map(([name, input]) => [name, { ...input, isRequired: true }] as const)
    return substitute(text, Object.fromEntries(required))
  }

  /** Replaces `{name}` by a variable. Everything else is text, also `${`. */
  function substitute(text: string, variables: Inputs): string {
    return text
      .split(/(\{[A-Za-z_][A-Za-z0-9_]*\})/)
      .map((piece, index) => {
        if (index % 2 === 0) return toLiteral(piece)
        const name = piece.slice(1, -1)
        if (!Object.hasOwn(variables, name)) throw new Unsupported('it uses a variable that it does not declare')
        return ask(name, variables[name] ?? {})
      })
      .join('')
  }

  function ask(
    label: string,
    { description, isRequired, isSecret, default: fallback, value }: z.infer<typeof Plain>,
  ): string {
    if (value !== undefined) return toLiteral(value)
    const name = `${prefix}_${label.replace(/[^A-Za-z0-9]+/g, '_')}`.slice(0, 128)
    if (found.has(name) && found.get(name)?.title !== label)
      throw new Unsupported('two of its variables have similar names')
    found.set(name, {
      name,
      title: label,
      ...(description && { description: description.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, 1024) }),
      secret: isSecret ?? false,
      required: isRequired ?? false,
      ...(fallback !== undefined && fallback !== '' && !isSecret && { default: fallback }),
    })
    return `\${${name}}`
  }
}

/** A `$` before a template would turn it into text, so it is refused instead of changed. */
function toLiteral(text: string): string {
  if (text.includes('$')) throw new Unsupported('a value contains $')
  return text
}
