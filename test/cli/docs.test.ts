import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const guide = join(root, 'docs', 'guide')
const pages = [join(root, 'README.md'), ...readdirSync(guide).map((name) => join(guide, name))]

type Block = { readonly page: string; readonly language: string; readonly text: string }

function listBlocks(): Block[] {
  return pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
      page: page.slice(root.length),
      language,
      text,
    })),
  )
}

/** Why a line cannot work from a clone; undefined if it can. */
function findFault(line: string): string | undefined {
  if (/npx -y sallyport|"-y",\s*"sallyport"/.test(line)) return 'the package is not published'
  if (/^(?:[A-Z_]+=\S+ )*sallyport /.test(line)) return 'there is no command of that name without npm link'
  const [, words] = /^(?:[A-Z_]+=\S+ )*npx sallyport (.*)$/.exec(line) ?? []
  return words === undefined ? undefined : findWrongWord(words)
}

function findWrongWord(text: string): string | undefined {
  const words = text
    .replace(/ (#|<|>|\||-- ).*$/, '')
    .replace(/'[^']*'|"[^"]*"/g, 'x')
    .split(/\s+/)
    .filter(Boolean)
  let command: Command = createProgram({ code: 0, trailing: [] })
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word)
    if (next) command = next
    else if (command.commands.length > 0 && !word.startsWith('-')) return `there is no command ${word}`
    else if (word.startsWith('--') && word !== '--' && !command.options.some(({ long }) => long === word.split('=')[0]))
      return `${command.name()} has no option ${word}`
  }
  return undefined
}

it('writes only commands that work from a clone, in README and guides', () => {
  const faults = listBlocks().flatMap(({ page, language, text }) => {
    const lines = ['sh', 'json', 'bash'].includes(language) ? text.split('\n') : []
    return lines.flatMap((line) => {
      const fault = findFault(line.trim())
      return fault === undefined ? [] : [`${page}: ${line.trim()}: ${fault}`]
    })
  })
  expect(faults).toEqual([])
})

it.each([
  ['npx -y sallyport stdio', 'not published'],
  ['"args": ["-y", "sallyport", "stdio"]', 'not published'],
  ['sallyport serve', 'without npm link'],
  ['npx sallyport servres list', 'no command servres'],
  ['npx sallyport status --jsno', 'no option --jsno'],
])('would find %s', (line, fault) => {
  expect(findFault(line)).toContain(fault)
})
