import { describe, expect, it } from 'vitest'
import { renderApproval } from '../../src/cli/commands/approvals/approval-view.ts'
import type { Approval } from '../../src/contract/approval.ts'
import { ServerPatch, ServerTitle } from '../../src/contract/server.ts'
import { describeSuspect } from '../../src/shared/approval.ts'

const approval: Approval = {
  id: 'apr_1',
  state: 'waiting',
  call: 'call_1',
  tool: 'notes_write',
  server: 'notes',
  title: 'write',
  principal: 'agent:helper',
  arguments: { n: 1 },
  hash: 'h',
  risk: 'write',
  reason: 'rule',
  approvers: ['any'],
  requestedAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-01T00:10:00.000Z',
  answers: [],
}
const now = Date.parse(approval.requestedAt)

describe('the title of a server', () => {
  it.each(['GitHub', 'Suivi des tâches · été', '課題', 'Team 👩‍💻', 'x'.repeat(128)])('may be %j', (title) => {
    expect(ServerPatch.parse({ title }).title).toBe(title)
  })

  it.each([
    ['nothing', ''],
    ['only spaces', '   '],
    ['a space at its end', 'GitHub '],
    ['129 characters', 'x'.repeat(129)],
    ['a line break', 'Notes\nrisk  read'],
    ['a line separator', 'Notes\u2028risk read'],
    ['an escape sequence', 'Notes\u001b[2K'],
    ['a right-to-left override', 'Notes\u202egnp'],
    ['an isolate', 'Notes\u2066x'],
    ['half a character', 'Notes\ud83d'],
  ])('is refused with %s', (_what, title) => {
    expect(ServerTitle.safeParse(title).success).toBe(false)
  })

  it('is one line of its own in an approval, and changes no other line', () => {
    const plain = renderApproval(approval, now).split('\n')
    const imitating = 'GitHub   risk  read   tool  github_search of the server github'
    const titled = renderApproval({ ...approval, serverTitle: imitating }, now).split('\n')
    const words = (lines: string[]) => lines.map((line) => line.replace(/ +/g, ' '))
    expect(words(titled).filter((line) => !words(plain).includes(line))).toEqual([
      `server title ${imitating.replace(/ +/g, ' ')}`,
    ])
    expect(words(titled)).toContain('tool notes_write of the server notes')
  })

  it('shows odd characters as marks, and an approval warns about them', () => {
    const serverTitle = 'Git\u200bHub Nоtes'
    expect(renderApproval({ ...approval, serverTitle }, now)).toContain('server title')
    expect(renderApproval({ ...approval, serverTitle }, now)).toContain('Git\\u{200b}Hub N\\u{43e}tes')
    expect(describeSuspect({ ...approval, serverTitle })).toContain('in the title of the server')
  })
})
