import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { configSchema } from '../../src/config/config.ts'
import { errorTable } from '../../src/contract/errors.ts'
import { configOf, createFolder } from './support.ts'

const root = join(import.meta.dirname, '../..')

async function generate(...options: string[]): Promise<{ code: number; output: string }> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'scripts/generate.mjs'), ...options], {
      cwd: root,
    })
    return { code: 0, output: stdout }
  } catch (error) {
    if (error instanceof Error && 'code' in error && 'stdout' in error) {
      return { code: Number(error.code), output: String(error.stdout) }
    }
    throw error
  }
}

describe('the generated reference', () => {
  it('is current', async () => {
    expect(await generate('--check')).toEqual({ code: 0, output: '' })
  })

  it('names the page that is stale and ends non-zero, without touching it', async () => {
    await using folder = await createFolder()
    expect((await generate(folder.path)).code).toBe(0)
    await folder.write('errors.md', 'old')
    const { code, output } = await generate('--check', folder.path)
    expect(code).toBe(1)
    expect(output).toMatch(/^stale: .*errors\.md \(run npm run generate\)\n$/)
    expect(await folder.read('errors.md')).toBe('old')
  })

  it('shows an example that is itself a valid configuration', async () => {
    const page = await readFile(join(root, 'docs/reference/configuration.md'), 'utf8')
    const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
    expect(Object.keys(configOf(example).servers)).toEqual(['github', 'files'])
  })

  it('has a sentence for every field', () => {
    const silent: string[] = []
    const visit = (schema: unknown, path: string): void => {
      if (typeof schema !== 'object' || schema === null) return
      for (const [key, value] of Object.entries(schema)) {
        if (key === 'properties') {
          for (const [name, field] of Object.entries(value ?? {})) {
            if (typeof field === 'object' && field !== null && !('description' in field)) silent.push(`${path}.${name}`)
            visit(field, `${path}.${name}`)
          }
        } else if (key !== 'default') visit(value, path)
      }
    }
    visit(configSchema(), '')
    expect(silent).toEqual([])
  })

  it('has a row for every error', async () => {
    const page = await readFile(join(root, 'docs/reference/errors.md'), 'utf8')
    for (const code of Object.keys(errorTable)) expect(page).toContain(`| [\`${code}\`](#${code}) |`)
  })
})
