import { describe, expect, it } from 'vitest'
import { errorTable } from '../../src/contract/errors.ts'
import { createFolder, runCli } from './support.ts'

describe('explain', () => {
  it('prints the section of a code without a gateway', async () => {
    await using folder = await createFolder()
    const { code, stdout, stderr } = await runCli(['explain', 'approval-expired'], { cwd: folder.path })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^approval-expired\n/)
    expect(stdout).toContain('The approval expired before the call could run.')
    expect(stdout).toContain('  - Repeat the call to ask for a new approval.')
    expect(stdout).toContain('HTTP 403, JSON-RPC -32007, exit code 6')
    expect(stdout).toContain('docs/guide/approvals.md')
  })

  it('is one JSON document with --json', async () => {
    expect((await runCli(['explain', 'data-locked', '--json'])).json()).toEqual({
      code: 'data-locked',
      meaning: expect.stringContaining('Another gateway'),
      example: expect.stringContaining('process 4711'),
      hint: errorTable['data-locked'].hint,
      steps: expect.arrayContaining([expect.stringContaining('sallyport status')]),
      exit: 1,
      guide: 'docs/guide/running.md#the-data-folder',
    })
  })

  it('lists every code with a short line', async () => {
    const { stdout } = await runCli(['explain'])
    for (const code of Object.keys(errorTable)) expect(stdout).toMatch(new RegExp(`^${code} +[A-Z\`].*\\.$`, 'm'))
    const { items } = (await runCli(['explain', '--json'])).json() as { items: unknown[] }
    expect(items).toHaveLength(Object.keys(errorTable).length)
  })

  it.each([
    ['aproval-expired', ['approval-expired']],
    ['grant', ['grant-not-found', 'grant-invalid']],
    ['Key', ['key-invalid', 'key-wrong', 'audit-key-wrong']],
    ['zzzzzz', []],
  ])('refuses the unknown code %s with the nearest codes', async (word, near) => {
    const ended = await runCli(['explain', word, '--json'])
    expect(ended.code).toBe(1)
    expect(ended.json()).toMatchObject({ error: { code: 'not-found', details: { suggestions: near } } })
    const { stderr } = await runCli(['explain', word])
    expect(stderr).toContain(`No error has the code ${word}.`)
    expect(stderr).toContain(near.length > 0 ? `Did you mean ${near.join(' or ')}?` : 'explain` lists all error codes')
  })
})

describe('a command that fails', () => {
  it('names the command that explains its error', async () => {
    await using folder = await createFolder()
    const { stderr } = await runCli(['status'], { cwd: folder.path })
    expect(stderr).toMatch(/sallyport serve.*\n +More: sallyport explain unreachable\n$/)
    const json = await runCli(['status', '--json'], { cwd: folder.path })
    expect(json.json()).toMatchObject({ error: { code: 'unreachable', docs: '/docs/errors#unreachable' } })
  })

  it('refers to its own help for wrong usage', async () => {
    const { stderr } = await runCli(['servers', 'get'])
    expect(stderr).toContain('--help')
    expect(stderr).not.toContain('explain')
  })
})
