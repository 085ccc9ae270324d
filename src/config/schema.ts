import { z } from 'zod'
import { Config } from '../contract/config.ts'
import { isPlainObject, own, type Path, type PlainObject, valueAt } from '../documents/values.ts'

/** The JSON Schema of a configuration file, for editors, `sallyport config schema` and the reference pages. */
export function configSchema(): PlainObject {
  built ??= buildSchema()
  return built
}

let built: PlainObject | undefined

function buildSchema(): PlainObject {
  const { $schema, ...schema } = z.toJSONSchema(Config, { io: 'input' })
  return {
    $schema,
    title: 'Sallyport configuration',
    description: 'The shape of sallyport.yaml, sallyport.json and sallyport.toml',
    ...schema,
  }
}

/** The part of the schema for a path of a value; undefined if the schema has no such path. */
export function findSchemaAt(path: Path, root: unknown): PlainObject | undefined {
  let schema: unknown = configSchema()
  let value = root
  for (const segment of path) {
    const branch = chooseBranch(schema, value)
    if (branch === undefined) return undefined
    schema = typeof segment === 'number' ? branch.items : stepInto(branch, segment)
    value = valueAt(value, [segment])
  }
  return chooseBranch(schema, value)
}

function stepInto(schema: PlainObject, key: string): unknown {
  const { properties, additionalProperties } = schema
  return (isPlainObject(properties) ? own(properties, key) : undefined) ?? additionalProperties
}

/** Chooses the alternative by `transport`, or the first one if `transport` is missing. */
function chooseBranch(schema: unknown, value: unknown): PlainObject | undefined {
  if (!isPlainObject(schema)) return undefined
  if (Array.isArray(schema.anyOf) && isPlainObject(value)) {
    return schema.anyOf.filter(isPlainObject).find(({ type }) => type === 'object') ?? schema
  }
  if (!Array.isArray(schema.oneOf)) return schema
  const branches = schema.oneOf.filter(isPlainObject)
  const transport = isPlainObject(value) ? value.transport : undefined
  return branches.find((branch) => transportOf(branch) === transport) ?? branches[0]
}

function transportOf(branch: PlainObject): unknown {
  const properties = isPlainObject(branch.properties) ? branch.properties : {}
  return isPlainObject(properties.transport) ? properties.transport.const : undefined
}

export function keysOf(schema: PlainObject | undefined): string[] {
  return isPlainObject(schema?.properties) ? Object.keys(schema.properties) : []
}
