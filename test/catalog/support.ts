import fc from 'fast-check'
import { type JudgedList, type JudgedTool, judgeTools } from '../../src/catalog/judge.ts'
import { offeredTools } from '../../src/catalog/view.ts'
import type { JsonValue } from '../../src/contract/json.ts'
import { ServerDefinition } from '../../src/contract/server.ts'

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

const patterns = { naming: '{server}_{tool}', describe: '{description}' }

/** What a server offers under the operator's choice. */
export function offer(judged: readonly JudgedTool[], choice: object = {}, more: object = {}) {
  const definition = ServerDefinition.parse({
    transport: 'stdio',
    command: 'x',
    trust: 'annotations',
    tools: choice,
    ...more,
  })
  const server = { name: 'files', scope: 'global', connection: 'files', definition } as const
  return offeredTools(server, judged, patterns)
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
