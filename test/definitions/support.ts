import fc from 'fast-check'
import type { JsonObject, JsonValue } from '../../src/contract/json.ts'
import { type JudgedList, type JudgedTool, judgeTools } from '../../src/definitions/judge.ts'

export function judge(...tools: unknown[]): JudgedList {
  const { tools: usable, setAside } = judgeTools(tools.map(toItem))
  return { tools: usable, setAside }
}

/** A tool as it stands in a server's list. */
export function toItem(tool: unknown): Buffer {
  return Buffer.from(typeof tool === 'string' ? tool : JSON.stringify(tool))
}

export function judgeOne(tool: unknown): JudgedTool {
  const { tools, setAside } = judge(tool)
  const [only] = tools
  if (!only) throw new Error(`Set aside: ${setAside[0]?.reason}`)
  return only
}

/** A definition with every field that a client may be shown. */
export const definition = {
  name: 'read_file',
  title: 'Read a file',
  description: 'Reads a file\nand returns it',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string', description: 'Where it is', enum: ['a', 'b'], default: 'a' } },
    required: ['path'],
  },
  outputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  annotations: { readOnlyHint: true, title: 'Reading' },
  icons: [{ src: 'https://example.com/i.png' }],
  _meta: { version: 1 },
  more: { from: 'a newer protocol' },
} satisfies JsonObject

export function reversed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]): [string, JsonValue] => [key, reversed(inner)])
      .reverse(),
  )
}

const keywords = [
  ...['type', 'properties', 'required', 'items', 'prefixItems', 'additionalProperties', 'patternProperties', 'pattern'],
  ...[
    'allOf',
    'anyOf',
    'oneOf',
    'not',
    'if',
    'then',
    'else',
    '$ref',
    '$defs',
    '$id',
    '$anchor',
    '$schema',
    '$dynamicRef',
  ],
  ...['enum', 'const', 'default', 'minimum', 'maxLength', 'nullable', 'dependencies', 'dependentRequired'],
  ...['contains', 'propertyNames', 'id', '$async', 'title', 'description', 'uniqueItems', 'multipleOf', 'x-own'],
]
const scalars = fc.oneof(
  fc.constantFrom(
    'object',
    'string',
    'array',
    'null',
    'nothing',
    '#',
    '#/$defs/a',
    '#/properties/a',
    '#/items/0',
    '#a',
  ),
  fc.constantFrom(
    '^(a+)+$',
    '(',
    '(?i)a',
    'a{2,3}',
    'http://127.0.0.1/x',
    'http://json-schema.org/draft-07/schema#',
    '',
  ),
  fc.constantFrom(null, true, false, 0, 1, -1, 1.5, 1e300),
)

/** JSON that looks like a schema here and there. */
export const schemaLike: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalars,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...keywords, 'a', '__proto__', 'constructor'), tie('value'), { maxKeys: 5 }),
  ),
})).value

const anyJson = fc.jsonValue({ maxDepth: 4 }).map((value): JsonValue => JSON.parse(JSON.stringify(value)))

/** Anything that a server may put into its list in the place of a tool. */
export const toolLike: fc.Arbitrary<unknown> = fc.oneof(
  anyJson,
  fc.record(
    {
      name: fc.oneof(fc.constantFrom('a', 'read_file', '', 'with space'), fc.string(), anyJson),
      title: fc.oneof(fc.string(), anyJson),
      description: fc.oneof(fc.string(), anyJson),
      inputSchema: schemaLike,
      outputSchema: fc.oneof(schemaLike, schemaLike.map(asObjectSchema)),
      annotations: fc.oneof(anyJson, fc.dictionary(fc.constantFrom('readOnlyHint', 'title', 'x'), anyJson)),
      icons: fc.oneof(anyJson, fc.constant([{ src: 'https://example.com/i.png' }]), fc.constant([{ src: 1 }])),
      execution: fc.oneof(anyJson, fc.constant({ taskSupport: 'required' })),
      _meta: anyJson,
      other: anyJson,
    },
    { requiredKeys: ['name'] },
  ),
)

function asObjectSchema(value: JsonValue): JsonValue {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value, type: 'object' } : value
}
