import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Risk } from '../../src/contract/risk.ts'
import { decide } from '../../src/policy/policy.ts'
import { configOf } from './support.ts'

const guide = readFileSync(new URL('../../docs/guide/first-rules.md', import.meta.url), 'utf8')
const blocks = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text)
const rules = blocks.flatMap((text) => configOf(text).rules)

function answer(tool: string, risk: Risk, given: Record<string, string> = {}): string {
  const subject = {
    tool,
    server: tool.split('_')[0] ?? '',
    risk,
    principal: 'agent:reviewer' as const,
    arguments: given,
    now: Date.now(),
    owner: 'kim',
    project: undefined,
    drifted: undefined,
  }
  return decide([{ scope: 'global', rules }], subject).action
}

describe('the first rules of the guide', () => {
  it('are a valid configuration, each block by itself', () => {
    expect(blocks.length).toBeGreaterThanOrEqual(6)
    for (const text of blocks) expect(configOf(text).rules.length).toBeGreaterThan(0)
  })

  it.each([
    ['files_write_file', 'danger', { path: '/srv/docs/drafts/a.md' }, 'allow'],
    ['files_write_file', 'danger', { path: '/srv/docs/final.md' }, 'ask'],
    ['files_write_file', 'danger', { path: '/srv/docs/drafts/../../../etc/passwd' }, 'deny'],
    ['files_move_file', 'danger', {}, 'ask'],
    ['files_read_file', 'read', { path: '/srv/docs/final.md' }, 'allow'],
    ['memory_create_entities', 'write', {}, 'allow'],
    ['memory_delete_entities', 'danger', {}, 'ask'],
    ['playwright_browser_navigate', 'danger', {}, 'allow'],
    ['playwright_browser_click', 'danger', {}, 'ask'],
    ['playwright_browser_run_code_unsafe', 'danger', {}, 'deny'],
    ['devtools_take_snapshot', 'write', {}, 'allow'],
    ['devtools_evaluate_script', 'write', {}, 'ask'],
    ['github_add_issue_comment', 'write', {}, 'allow'],
    ['github_merge_pull_request', 'write', {}, 'ask'],
  ] as const)('answer %s (%s) with %j by %s', (tool, risk, given, action) => {
    expect(answer(tool, risk, given)).toBe(action)
  })
})
