import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, CommanderError } from 'commander'
import { expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const guide = join(root, 'docs', 'guide')
const pages = [
  join(root, 'README.md'),
  join(root, 'docs', 'reference', 'errors.md'),
  ...readdirSync(guide).map((name) => join(guide, name)),
]

type Block = { readonly page: string; readonly language: string; readonly text: string }

function listBlocks(): Block[] {
  return pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/^ *```(\w+)\n(.*?)^ *```$/gms)].map(([, language = '', text = '']) => ({
      page: page.slice(root.length),
      language,
      text,
    })),
  )
}

/** Commands between backticks in running text. */
function listInline(): Block[] {
  return pages.flatMap((page) => {
    const prose = readFileSync(page, 'utf8').replace(/^ *```[\s\S]*?^ *```$/gm, '')
    return [...prose.matchAll(/`((?:npx )?sallyport [a-z-][^`]*)`/g)].map(([, text = '']) => ({
      page: page.slice(root.length),
      language: 'inline',
      text: text.replace(/\s+/g, ' '),
    }))
  })
}

/** Why a line cannot work from a clone; undefined if it can. */
function findFault(line: string): string | undefined {
  if (/npx -y sallyport|"-y",\s*"sallyport"/.test(line)) return 'the package is not published'
  if (/^(?:[A-Z_]+=\S+ )*sallyport /.test(line)) return 'there is no command of that name without npm link'
  const [, words] = /^(?:.* \| )?(?:[A-Z_]+=\S+ )*npx sallyport (.*)$/.exec(line) ?? []
  return words === undefined ? undefined : findMistake(words)
}

/** What the command line says to these words: unknown commands and options, missing and superfluous arguments. */
function findMistake(text: string): string | undefined {
  const [before = ''] = ` ${text}`.split(/ (?:#|<|>|\||--) /, 1)
  const words = [...before.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  )
  const program = createProgram({ code: 0, trailing: [] })
  forEachCommand(program, (command) => {
    command.configureOutput({ writeOut() {}, writeErr() {}, outputError() {} }).action(() => {})
  })
  try {
    program.parse(words, { from: 'user' })
    return undefined
  } catch (error) {
    return error instanceof CommanderError ? error.message : String(error)
  }
}

function forEachCommand(command: Command, act: (command: Command) => void): void {
  if (command.commands.length === 0) act(command)
  for (const each of command.commands) forEachCommand(each, act)
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

/** The line that `serve` prints. */
const noCommands = /^sallyport ready /

it('names only commands that exist between backticks, with options and arguments that they take', () => {
  const faults = listInline()
    .filter(({ text }, index, all) => !noCommands.test(text) && all.findIndex((each) => each.text === text) === index)
    .flatMap(({ page, text }) => {
      const fault = findMistake(text.replace(/^(npx )?sallyport /, ''))
      return fault === undefined ? [] : [`${page}: ${text}: ${fault}`]
    })
  expect(faults).toEqual([])
})

it.each([
  ['npx -y sallyport stdio', 'not published'],
  ['"args": ["-y", "sallyport", "stdio"]', 'not published'],
  ['sallyport serve', 'without npm link'],
  ['npx sallyport servres list', "unknown command 'servres'"],
  ['npx sallyport status --jsno', "unknown option '--jsno'"],
  ['npx sallyport servers get', "missing required argument 'name'"],
  ['npx sallyport servers get a b', 'too many arguments'],
  ['npx sallyport servers add x --url', "option '--url <url>' argument missing"],
  ['echo x | npx sallyport secrets sett NAME', "unknown command 'sett'"],
])('would find %s', (line, fault) => {
  expect(findFault(line)).toContain(fault)
})
