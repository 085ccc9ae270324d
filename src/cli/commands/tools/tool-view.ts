import type { Tool } from '../../../contract/tool.ts'
import { toVisible } from '../../../shared/visible.ts'
import { toRunnable } from '../../terminal/connect-line.ts'
import { renderTable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { wrapWords } from '../../terminal/width.ts'
import { paintRisk, renderFacts, riskOrigins } from '../../terminal/words.ts'
import { toCommand } from './guide.ts'
import { describeType, type Field, type Schema, toExampleArguments, toFields, toSchema } from './schema.ts'

type ToolArgument = {
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly default?: unknown
  readonly description?: string
}

type ShownTool = Tool & { readonly arguments: readonly ToolArgument[]; readonly example: string }

export function toShownTool(tool: Tool): ShownTool {
  const root = toSchema(tool.inputSchema)
  return {
    ...tool,
    arguments: toFields(root).map((field) => toArgument(root, field)),
    example: toCommand(tool.name, toExampleArguments(root)),
  }
}

function toArgument(root: Schema, { name, schema, required }: Field): ToolArgument {
  return {
    name,
    type: describeType(root, schema),
    required,
    ...(schema.default !== undefined && { default: schema.default }),
    ...(typeof schema.description === 'string' && { description: schema.description }),
  }
}

export function renderTool(terminal: Terminal, tool: ShownTool): string {
  const facts = renderFacts([
    ['tool', tool.name],
    ['title', tool.title ?? tool.annotations?.title],
    ['server', `${tool.server} (original name: ${tool.original})`],
    ['changed', tool.drifted && driftWords[tool.drifted]],
    ['corrected', tool.mended],
  ])
  const risk = paintRisk(terminal, tool.risk)(tool.risk)
  return [
    `${facts}\n${'risk'.padEnd(facts.indexOf(tool.name))}${risk}, from: ${riskOrigins[tool.riskFrom]}`,
    indent(toVisible(tool.description || 'No description.'), terminal.width),
    tool.arguments.length > 0 ? renderArguments(terminal, tool.arguments) : 'The tool has no arguments.',
    `Example\n  ${toRunnable(toVisible(tool.example))}`,
  ].join('\n\n')
}

const driftWords: Readonly<Record<NonNullable<Tool['drifted']>, string>> = {
  changed: 'differs from the accepted definition: calls require approval',
  new: 'not accepted yet: calls require approval',
}

function renderArguments(terminal: Terminal, given: readonly ToolArgument[]): string {
  return renderTable(
    given,
    [
      { title: 'argument', value: ({ name }) => name },
      { title: 'type', value: ({ type }) => type },
      { title: 'required', value: ({ required }) => (required ? 'yes' : 'no') },
      ...(given.some((each) => each.default !== undefined)
        ? [{ title: 'default', value: (each: ToolArgument) => JSON.stringify(each.default) ?? '' }]
        : []),
      { title: 'description', value: ({ description = '' }) => description },
    ],
    terminal.width,
  )
}

function indent(text: string, width: number | undefined): string {
  const lines = text.trim().split('\n')
  const fitting = width === undefined ? lines : lines.flatMap((line) => wrapWords(line, width - 2))
  return fitting.map((line) => `  ${line}`.trimEnd()).join('\n')
}
