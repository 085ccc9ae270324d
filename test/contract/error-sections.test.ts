import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorGroups, errorSections, toNumbers } from '../../src/contract/error-sections/error-sections.ts'
import { guidePages } from '../../src/contract/error-sections/section.ts'
import { type ErrorCode, errorTable, isErrorCode } from '../../src/contract/errors.ts'

const root = resolve(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/reference/errors.md'), 'utf8')
const codes = Object.keys(errorTable).filter(isErrorCode)

/** The text below the heading of a code, up to the next heading. */
function findSection(text: string, code: string): string | undefined {
  return text.split(/^#{2,3} /m).find((section) => section.startsWith(`\`${code}\`\n`))
}

/** The anchors of a Markdown file, as GitHub makes them. */
function listAnchors(text: string): string[] {
  const headings = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading)
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** Links of a page in docs/reference that lead nowhere. */
function listBroken(text: string): string[] {
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link)
  return links.filter((link) => {
    const [file = '', anchor] = link.split('#')
    try {
      const target = file === '' ? text : readFileSync(join(root, 'docs/reference', file), 'utf8')
      return anchor !== undefined && !listAnchors(target).includes(anchor)
    } catch {
      return true
    }
  })
}

describe('the reference of errors', () => {
  it.each(codes)('has a section for %s, with its meaning and what to do', (code) => {
    const { meaning, steps } = errorSections[code]
    const section = findSection(page, code)
    expect(section).toContain(meaning)
    for (const step of steps) expect(section).toContain(`- ${step}`)
    expect(section).toMatch(/^Appears as: .*\d/m)
    expect(section).toMatch(/^Guide: \[.+\]\(\.\.\/guide\/.+\)$/m)
  })

  it('would miss a code without a section', () => {
    expect(findSection(page, 'approval')).toBeUndefined()
    expect(findSection(page, 'not-found')).not.toEqual(findSection(page, 'tool-not-found'))
  })

  it('has only links that lead to an existing file and heading', () => {
    expect(listBroken(page)).toEqual([])
    expect(listBroken('[a](../guide/nowhere.md) [b](../guide/approvals.md#nowhere) [c](#x)\n')).toHaveLength(3)
  })

  it('names the guide pages by their titles', () => {
    for (const [file, title] of Object.entries(guidePages))
      expect(readFileSync(join(root, 'docs/guide', file), 'utf8').split('\n', 1)[0]).toBe(`# ${title}`)
  })
})

describe('a section', () => {
  it.each(codes)('of %s is in one group, short, and in whole sentences', (code) => {
    expect(errorGroups.filter((group) => group.codes.includes(code))).toHaveLength(1)
    const { meaning, steps } = errorSections[code]
    for (const text of [meaning, ...steps, errorTable[code].hint]) expect(text).toMatch(/^[`A-Z].*[.]$/s)
    expect(meaning.split(/(?<=[.]) (?=[A-Z`])/).length).toBeLessThanOrEqual(4)
    expect(steps.length).toBeGreaterThan(0)
  })

  it('has the numbers of the surfaces on which the error appears', () => {
    expect(toNumbers('approval-expired')).toEqual({ http: 403, rpc: -32007, exit: 6 })
    expect(toNumbers('data-locked')).toEqual({ exit: 1 })
    expect(toNumbers('session-not-found')).toEqual({ http: 404, rpc: -32001 })
  })

  it('names only settings and codes that exist', () => {
    const reference = readFileSync(join(root, 'docs/reference/config.schema.json'), 'utf8')
    const texts = codes.flatMap((code) => [...errorSections[code].steps, errorTable[code].hint])
    const settings = texts.flatMap((text) => [...text.matchAll(/`((?:limits|listen|egress|timeout)\.\w+)`/g)])
    expect(settings.length).toBeGreaterThan(10)
    for (const [, setting = ''] of settings) expect(reference).toContain(`"${setting.split('.')[1]}"`)
  })
})

it('loads the sections only where they are shown', () => {
  const sources = ['src', 'web/src'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter(({ name, parentPath }) => /\.tsx?$/.test(name) && !parentPath.endsWith('error-sections'))
      .map(({ name, parentPath }) => join(parentPath, name)),
  )
  expect(sources.length).toBeGreaterThan(200)
  const importing = (file: string) =>
    sources
      .filter((source) =>
        new RegExp(`^(import|export) .*from '.*/${file}\\.ts'`, 'm').test(readFileSync(source, 'utf8')),
      )
      .map((source) => relative(root, source))
  expect(importing('error-sections')).toEqual(['src/http/errors-page.ts'])
  expect(importing('errors-page')).toEqual([])
})

/** The compiler demands a section for a new code: this would not compile with one missing. */
const demanded: Readonly<Record<ErrorCode, unknown>> = errorSections
it('has no section without a code', () => {
  expect(Object.keys(demanded).sort()).toEqual([...codes].sort())
})
