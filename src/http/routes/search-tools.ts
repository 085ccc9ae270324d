import type { Tool } from '../../contract/tool.ts'

/** Every word must match. Matches in names rank before matches in descriptions; equal matches keep their order. */
export function searchTools(tools: readonly Tool[], query: string): Tool[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  return tools
    .map((tool) => ({ tool, score: score(tool, words) }))
    .filter((each) => each.score > 0)
    .sort((left, right) => right.score - left.score)
    .map((each) => each.tool)
}

function score(tool: Tool, words: readonly string[]): number {
  const names = `${tool.name} ${tool.original} ${tool.title ?? ''}`.toLowerCase()
  const parts = new Set(names.split(/[^\p{L}\p{N}]+/u))
  const description = `${tool.description} ${tool.server}`.toLowerCase()
  let total = 0
  for (const word of words) {
    const points = (parts.has(word) ? 8 : 0) + (names.includes(word) ? 4 : 0) + (description.includes(word) ? 1 : 0)
    if (points === 0) return 0
    total += points
  }
  return total
}
