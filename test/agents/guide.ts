import { readFileSync } from 'node:fs'
import { type Fields, parseJson, toFields } from '../fixtures/lib/json-rpc.ts'

const guide = readFileSync(new URL('../../docs/guide/agents.md', import.meta.url), 'utf8')

/** What the guide tells people to write into an agent's file, with the address of the gateway at hand. */
export function guideBlock(agent: string, language: 'json' | 'toml', mcpUrl: string): string {
  const [, section = ''] = guide.split(`\n## ${agent}\n`)
  const [, block] = section.split('\n## ', 1).join('').split(`\`\`\`${language}\n`)
  if (block === undefined) throw new Error(`The guide has no ${language} for ${agent}`)
  return block.split('```', 1).join('').replaceAll('http://127.0.0.1:4777/mcp', mcpUrl)
}

export function guideJson(agent: string, mcpUrl: string): Fields {
  return toFields(parseJson(guideBlock(agent, 'json', mcpUrl)))
}
