import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { JsonObject, JsonValue } from '../contract/json.ts'
import { type SetAside, ToolAnnotations } from '../contract/tool.ts'
import { isObject, JsonError, parseJson } from '../lib/json.ts'
import { toVisible } from '../lib/text.ts'
import { findMirrors, type Mirror } from '../wire/mirrors.ts'
import { judgeSchema } from './schema.ts'

/** A tool as its server defines it, found usable. */
export type JudgedTool = {
  readonly name: string
  readonly title: string | undefined
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema: JsonObject | undefined
  readonly annotations: ToolAnnotations | undefined
  /** The arguments that HTTP repeats in headers. */
  readonly mirrors: readonly Mirror[]
  /** Everything else that the server says of it, passed on as it is. */
  readonly rest: JsonObject
  readonly mended: string | undefined
  /** Of the definition as it came: any change to it changes this. */
  readonly hash: string
}

export type JudgedList = { readonly tools: readonly JudgedTool[]; readonly setAside: readonly SetAside[] }

const maxToolBytes = 256 * 1024
const maxNameLength = 128
/** Visible ASCII: what looks alike, turns around or hides cannot pose as another tool. */
const possibleName = /^[\x20-\x7e]+$/

/** Judges every tool alone: one that cannot be used is put aside with the reason, the others work. */
export function judgeTools(items: readonly Buffer[]): JudgedList {
  const tools = new Map<string, JudgedTool>()
  const setAside: SetAside[] = []
  for (const item of items) {
    const judged = judgeTool(item)
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
  return { tools: [...tools.values()], setAside }
}

function judgeTool(item: Buffer): JudgedTool | SetAside {
  if (item.length > maxToolBytes) return { name: nameHint(item), reason: `its definition has ${item.length} bytes` }
  let value: JsonValue
  try {
    value = parseJson(item)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const reason = error.fault === 'too-deep' ? 'its definition is nested too deep' : 'its definition is not JSON'
    return { name: nameHint(item), reason }
  }
  if (!isObject(value)) return { name: '(none)', reason: 'it is not an object' }
  const { name, title, description, inputSchema, outputSchema, annotations, ...rest } = value
  const problem = nameProblem(name)
  if (typeof name !== 'string' || problem) return { name: shown(name), reason: problem ?? 'it has no name' }
  const input = judgeSchema(inputSchema)
  if (input.kind === 'dangerous') return { name, reason: `its input schema ${input.reason}` }
  const found = findMirrors(input.schema)
  if ('problem' in found) return { name, reason: `its input schema ${found.problem}` }
  const output = outputSchema === undefined ? undefined : judgeSchema(outputSchema)
  const usableOutput = output?.kind === 'usable' && output.mended === undefined ? output.schema : undefined
  const mended = [input.mended, output && !usableOutput ? 'output schema left out' : undefined].filter(Boolean)
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
    hash: createHash('sha256').update(item).digest('hex'),
  }
}

/** Hint by hint: one that is not worth reading must not hide another that says `destructive`. */
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

/** What clients check is passed on only in its proper form: one slip would make them refuse the whole list. */
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
  if (name.length > maxNameLength) return `its name has ${name.length} characters`
  if (!possibleName.test(name)) return 'its name has characters that hide, look alike or control'
  return undefined
}

/** A letter of another alphabet would look like a name that is fine. */
const lookalike = /[^\x20-\x7e]/gu

function shown(name: JsonValue | undefined): string {
  if (typeof name !== 'string') return '(none)'
  const oneLine = toVisible(name).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
  return (
    oneLine.replace(lookalike, (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`).slice(0, 120) || '(empty)'
  )
}

/** The name of a definition that is not worth reading, if it is easy to see. */
function nameHint(item: Buffer): string {
  const found = /"name"\s*:\s*"([^"\\]{1,120})"/.exec(item.toString('utf8', 0, 4096))
  return found?.[1] === undefined ? '(unknown)' : shown(found[1])
}
