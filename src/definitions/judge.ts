import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { JsonObject, JsonValue } from '../contract/json.ts'
import { type SetAside, ToolAnnotations } from '../contract/tool.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { isObject, JsonError, parseJson } from '../lib/json.ts'
import { toVisible } from '../shared/visible.ts'
import { findMirrors, type Mirror } from '../wire/mirrors.ts'
import { findMentions } from './mentions.ts'
import { judgeSchema } from './schema.ts'
import { findSteering } from './steering.ts'

/** A usable tool, as its server defines it. */
export type JudgedTool = {
  readonly name: string
  readonly title: string | undefined
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema: JsonObject | undefined
  readonly annotations: ToolAnnotations | undefined
  /** The arguments that are repeated in HTTP headers. */
  readonly mirrors: readonly Mirror[]
  /** All other fields of the definition, passed on unchanged. */
  readonly rest: JsonObject
  readonly mended: string | undefined
  /** Hash of the whole definition. Every change that a client could see changes it. */
  readonly hash: string
  /** The reason why its text seems to steer a model. */
  readonly steering: string | undefined
  /** Words of its text that could be names of tools. */
  readonly mentions: readonly string[]
  /** Set if agents see another definition than the server's current one, or if the tool is not accepted yet. */
  readonly drift?: Drift
}

/** The drift of a tool from its accepted definition. */
export type Drift = {
  readonly kind: 'changed' | 'new'
  /** The current definition of the server. A call runs this tool. */
  readonly live: JudgedTool
  /** The difference between the accepted and the live definition, for display. */
  difference(): string
}

/** The kind of drift in words, for the reason of a decision. */
export const driftWords: Readonly<Record<Drift['kind'], string>> = {
  changed: 'its server now sends another definition',
  new: 'the tool is new',
}

export type JudgedList = { readonly tools: readonly JudgedTool[]; readonly setAside: readonly SetAside[] }

/** A list with the outcome of each item, so that unchanged items are not judged again. */
export type JudgedItems = JudgedList & {
  readonly items: readonly Buffer[]
  readonly outcomes: readonly (JudgedTool | SetAside)[]
}

const maxToolBytes = 256 * 1024
const maxNameLength = 128
/** Visible ASCII only: look-alike, bidirectional or invisible characters could imitate the name of another tool. */
const possibleName = /^[\x20-\x7e]+$/

/** Judges each tool separately. An unusable tool is set aside with the reason, and the others stay usable. */
export function judgeTools(items: readonly Buffer[], before?: JudgedItems): JudgedItems {
  const tools = new Map<string, JudgedTool>()
  const setAside: SetAside[] = []
  const known = before ? sameOutcomes(items, before) : () => undefined
  const outcomes = items.map((item, index) => known(index) ?? judgeTool(item))
  for (const judged of outcomes) {
    if ('reason' in judged) {
      setAside.push(judged)
      continue
    }
    if (tools.has(judged.name)) {
      setAside.push({ name: toVisible(judged.name), reason: 'the server lists this name twice' })
      continue
    }
    tools.set(judged.name, judged)
  }
  return { tools: [...tools.values()], setAside, items, outcomes }
}

/** Reuses the outcomes of the equal items at the beginning and end, because lists usually change in one place. */
function sameOutcomes(
  items: readonly Buffer[],
  before: JudgedItems,
): (index: number) => JudgedTool | SetAside | undefined {
  const isSame = (a: Buffer | undefined, b: Buffer | undefined) => a !== undefined && b !== undefined && a.equals(b)
  const shift = before.items.length - items.length
  let head = 0
  while (isSame(items[head], before.items[head])) head++
  let tail = items.length
  while (tail > head && tail + shift > head && isSame(items[tail - 1], before.items[tail - 1 + shift])) tail--
  return (index) => before.outcomes[index < head ? index : index >= tail ? index + shift : -1]
}

export function judgeTool(item: Buffer): JudgedTool | SetAside {
  if (item.length > maxToolBytes)
    return { name: nameHint(item), reason: `its definition has ${item.length} bytes, more than ${maxToolBytes}` }
  let value: JsonValue
  try {
    value = parseJson(item)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const reason = error.fault === 'too-deep' ? 'its definition is nested too deeply' : 'its definition is not JSON'
    return { name: nameHint(item), reason }
  }
  if (!isObject(value)) return { name: '(none)', reason: 'its definition is not an object' }
  const { name, title, description, inputSchema, outputSchema, annotations, ...rest } = value
  const problem = nameProblem(name)
  if (typeof name !== 'string' || problem) return { name: shown(name), reason: problem ?? 'it has no name' }
  const input = judgeSchema(inputSchema)
  if (input.kind === 'dangerous') return { name, reason: `its input schema ${input.reason}` }
  const found = findMirrors(input.schema)
  if ('problem' in found) return { name, reason: `its input schema ${found.problem}` }
  const output = outputSchema === undefined ? undefined : judgeSchema(outputSchema)
  const usableOutput = output?.kind === 'usable' && output.mended === undefined ? output.schema : undefined
  const mended = [input.mended, output && !usableOutput ? 'output schema removed' : undefined].filter(Boolean)
  return {
    name,
    title: typeof title === 'string' ? title : undefined,
    description: typeof description === 'string' ? description : '',
    inputSchema: input.schema,
    outputSchema: usableOutput,
    annotations: toAnnotations(annotations),
    mirrors: found.mirrors,
    rest: toRest(rest),
    mended: mended.length > 0 ? mended.join('; ') : undefined,
    hash: toDefinitionHash(value),
    steering: findSteering(value),
    mentions: findMentions(value),
  }
}

/** The hash does not depend on the order of keys. */
export function toDefinitionHash(value: JsonValue): string {
  return createHash('sha256').update(toCanonicalText(value)).digest('hex')
}

/** Reads each hint separately: an invalid hint must not discard `destructiveHint`. */
function toAnnotations(value: JsonValue | undefined): ToolAnnotations | undefined {
  if (!isObject(value)) return undefined
  const usable = Object.entries(value).filter(([key, hint]) => ToolAnnotations.safeParse({ [key]: hint }).success)
  return ToolAnnotations.parse(Object.fromEntries(usable))
}

const Icon = z.looseObject({
  src: z.string(),
  mimeType: z.string().optional(),
  sizes: z.array(z.string()).optional(),
  theme: z.enum(['light', 'dark']).optional(),
})

const Execution = z.object({ taskSupport: z.enum(['forbidden', 'optional', 'required']) })

/** Removes invalid values of fields that clients validate: one mistake would make them refuse the whole list. */
function toRest({ execution, _meta, icons, ...others }: JsonObject): JsonObject {
  const executed = Execution.safeParse(execution)
  const iconsFit = Array.isArray(icons) && icons.every((icon) => Icon.safeParse(icon).success)
  return {
    ...others,
    ...(isObject(_meta) && { _meta }),
    ...(iconsFit && { icons }),
    ...(executed.success && { execution: executed.data }),
  }
}

function nameProblem(name: JsonValue | undefined): string | undefined {
  if (typeof name !== 'string' || name.trim() === '') return 'it has no name'
  if (name.length > maxNameLength) return `its name has ${name.length} characters, more than ${maxNameLength}`
  if (!possibleName.test(name)) return 'its name contains characters that are not visible ASCII'
  return undefined
}

/** Characters to escape: a letter of another alphabet would look like a valid name. */
const lookalike = /[^\x20-\x7e]/gu

function shown(name: JsonValue | undefined): string {
  if (typeof name !== 'string') return '(none)'
  const oneLine = toVisible(name).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
  return (
    oneLine.replace(lookalike, (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`).slice(0, 120) || '(empty)'
  )
}

/** The name in a definition that cannot be parsed, if a simple search finds it. */
function nameHint(item: Buffer): string {
  const found = /"name"\s*:\s*"([^"\\]{1,120})"/.exec(item.toString('utf8', 0, 4096))
  return found?.[1] === undefined ? '(unknown)' : shown(found[1])
}
