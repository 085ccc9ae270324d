import { z } from 'zod'
import { toVisible } from '../../../shared/visible.ts'
import { toBytes } from '../../terminal/bytes.ts'

/** The parts of a tool's result that a terminal can show; `--json` prints the whole result. */
const ToolResult = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
})

const Text = z.object({ type: z.literal('text'), text: z.string() })
const Media = z.object({ type: z.enum(['image', 'audio']), data: z.string(), mimeType: z.string().default('unknown') })
const Link = z.object({ type: z.literal('resource_link'), uri: z.string() })
const Embedded = z.object({
  type: z.literal('resource'),
  resource: z.looseObject({ uri: z.string(), text: z.string().optional() }),
})

export function isFailed(result: unknown): boolean {
  return ToolResult.safeParse(result).data?.isError ?? false
}

/** Text as text; other content as a short description. */
export function renderResult(result: unknown): string {
  const parsed = ToolResult.safeParse(result)
  if (!parsed.success) return toVisible(JSON.stringify(result, null, 2) ?? '')
  const { content, structuredContent } = parsed.data
  if (content.length === 0)
    return structuredContent === undefined ? '' : toVisible(JSON.stringify(structuredContent, null, 2))
  return content.map(renderBlock).join('\n')
}

function renderBlock(block: unknown): string {
  const text = Text.safeParse(block).data
  if (text) return toVisible(text.text)
  const media = Media.safeParse(block).data
  if (media)
    return toVisible(
      `[${media.type} ${media.mimeType}, ${toBytes(Buffer.byteLength(media.data, 'base64'))}; use --json to get the data]`,
    )
  const link = Link.safeParse(block).data
  if (link) return toVisible(`[resource ${link.uri}]`)
  const embedded = Embedded.safeParse(block).data
  if (embedded)
    return toVisible(`[resource ${embedded.resource.uri}]\n${embedded.resource.text ?? '[use --json to get the data]'}`)
  return toVisible(JSON.stringify(block))
}
