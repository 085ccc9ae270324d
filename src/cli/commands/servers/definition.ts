import { z } from 'zod'
import { GatewayError } from '../../../contract/errors.ts'
import { Risk } from '../../../contract/risk.ts'
import { ServerDefinition } from '../../../contract/server.ts'
import { isObject, parseJson } from '../../../lib/json.ts'
import { toVisible } from '../../../shared/visible.ts'
import type { OptionSpec } from '../command.ts'

/** Options of `servers add` and `servers validate` that describe a server. */
export const definitionOptions: readonly OptionSpec[] = [
  ['--url <url>', "address of the server (the gateway's address is --gateway)"],
  ['--header <header>', "header 'Name: value', sent with every request; can be repeated", 'many'],
  ['--sse', 'use the old HTTP+SSE transport'],
  ['--env <variable>', 'environment variable NAME=VALUE for the command; can be repeated', 'many'],
  ['--cwd <folder>', 'working folder of the command'],
  ['--from-json <json>', 'complete definition as JSON, in the form of the configuration file'],
  ['--title <text>', 'name for people, shown beside the name'],
  ['--description <text>', 'what the server is for'],
  ['--default-risk <risk>', 'risk of tools without annotations: read, write or danger'],
  ['--trust <trust>', 'annotations: use the risk hints of the server; none: ignore them'],
  ['--disabled', 'save the server without connecting'],
]

export const DefinitionInput = z.object({
  command: z.array(z.string()).default([]),
  url: z.string().optional(),
  header: z.array(z.string()),
  sse: z.boolean().default(false),
  env: z.array(z.string()),
  cwd: z.string().optional(),
  fromJson: z.string().optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  defaultRisk: Risk.optional(),
  trust: z.enum(['annotations', 'none']).optional(),
  disabled: z.boolean().default(false),
})
export type DefinitionInput = z.infer<typeof DefinitionInput>

export function hasDefinition(input: DefinitionInput): boolean {
  return input.url !== undefined || input.fromJson !== undefined || input.command.length > 0
}

/** Whether any option describes a server, also without its address or command. */
export function isDescribed({ header, env, ...input }: DefinitionInput): boolean {
  const { sse, cwd, title, description, defaultRisk, trust, disabled } = input
  const others = [cwd, title, description, defaultRisk, trust].some((option) => option !== undefined)
  return hasDefinition({ header, env, ...input }) || header.length > 0 || env.length > 0 || sse || disabled || others
}

export const describeOneWay =
  'Describe the server with exactly one of: --url URL, --from-json JSON, or -- COMMAND ARGUMENTS'

export function toDefinition(input: DefinitionInput): ServerDefinition {
  const ways = [input.url !== undefined, input.fromJson !== undefined, input.command.length > 0]
  if (ways.filter(Boolean).length !== 1) {
    throw wrong(describeOneWay)
  }
  const parsed = ServerDefinition.safeParse({ ...toTransport(input), ...toCommon(input) })
  if (parsed.success) return parsed.data
  throw wrong(
    parsed.error.issues.map((issue) => `${issue.path.join('.') || 'definition'}: ${issue.message}`).join('; '),
  )
}

function toTransport(input: DefinitionInput): object {
  if (input.fromJson !== undefined) return toOurs(input.fromJson)
  if (input.url !== undefined) {
    if (input.env.length > 0 || input.cwd !== undefined)
      throw wrong('--env and --cwd cannot be used with --url, only with a command')
    const headers = Object.fromEntries(input.header.map((header) => split(header, ':', "--header 'Name: value'")))
    return { transport: input.sse ? 'sse' : 'http', url: input.url, headers }
  }
  if (input.header.length > 0 || input.sse)
    throw wrong('--header and --sse cannot be used with a command, only with --url')
  const [command, ...args] = input.command
  const env = Object.fromEntries(input.env.map((variable) => split(variable, '=', '--env NAME=VALUE')))
  return { transport: 'stdio', command, args, env, ...(input.cwd !== undefined && { cwd: input.cwd }) }
}

function toCommon({ title, description, defaultRisk, trust, disabled }: DefinitionInput): object {
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(defaultRisk && { defaultRisk }),
    ...(trust && { trust }),
    ...(disabled && { enabled: false }),
  }
}

/** Other programs write `type` instead of `transport`, or omit it: `command` or `url` implies the transport. */
function toOurs(text: string): object {
  const value = toObject(text)
  const { type, ...rest } = value
  if (value.transport !== undefined) return value
  if (value.command !== undefined || type === 'stdio') return { transport: 'stdio', ...rest }
  return { transport: type === 'sse' ? 'sse' : 'http', ...rest }
}

function toObject(text: string): Record<string, unknown> {
  try {
    const value = parseJson(text)
    if (isObject(value)) return value
  } catch (error) {
    throw wrong(`--from-json is not JSON: ${toVisible(error instanceof Error ? error.message : String(error))}`)
  }
  throw wrong('--from-json must be one JSON object')
}

function split(text: string, separator: string, form: string): [string, string] {
  const at = text.indexOf(separator)
  if (at < 1) throw wrong(`${toVisible(text)} is not of the form ${form}`)
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

function wrong(message: string): GatewayError {
  return new GatewayError('request-invalid', message)
}
