import { createColors } from 'picocolors'
import { describe, expect, it } from 'vitest'
import { toKey } from '../../src/cli/commands/approvals/watch/full-screen.ts'
import { draw, toView } from '../../src/cli/commands/approvals/watch/screen.ts'
import {
  advance,
  createWatch,
  type Detail,
  type Happening,
  type Pending,
  takeBackMs,
  type Watch,
} from '../../src/cli/commands/approvals/watch/state.ts'
import { displayWidth, wrap, wrapWords } from '../../src/cli/terminal/width.ts'
import type { Approval } from '../../src/contract/approval.ts'

const start = Date.parse('2026-11-16T10:00:00Z')
const look = { size: { columns: 80, rows: 24 }, now: start, colours: createColors(false) }

function approval(number: number, more: Partial<Approval> = {}): Approval {
  return {
    id: `approval_${number}`,
    state: 'waiting',
    call: `call_${number}`,
    tool: 'files_write',
    server: 'files',
    title: `Write ${number}.txt`,
    principal: 'agent:bot',
    owner: 'kim',
    arguments: { path: `${number}.txt` },
    hash: `hash-${number}`,
    risk: 'write',
    reason: 'no rule matches; write requires approval',
    approvers: ['any'],
    requestedAt: new Date(start + number).toISOString(),
    expiresAt: new Date(start + 600_000).toISOString(),
    answers: [],
    ...more,
  }
}

const answeredBy = (by: string, approval: Approval): Approval => ({
  ...approval,
  state: 'approved',
  answers: [{ by, verdict: 'approve', at: new Date(start).toISOString() }],
})
const told = (approval: Approval): Happening => ({ kind: 'approval', name: 'approval-answered', approval })
const asked = (approval: Approval): Happening => ({ kind: 'approval', name: 'approval-requested', approval })

/** What somebody does, and what is sent while they do it. */
function play(happenings: readonly (Happening | string)[], from: Watch = createWatch('ada'), slow = false) {
  const sent: Pending[] = []
  let watch = from
  let ended = false
  for (const each of happenings) {
    const step = advance(watch, typeof each === 'string' ? press(each, watch) : each)
    watch = slow ? step.watch : withDetail(step.watch)
    if (step.send) sent.push(step.send)
    ended ||= step.end === true
  }
  return { watch, sent, ended, screen: draw(watch, look).join('\n') }
}

/** The gateway answers at once. */
function withDetail(watch: Watch): Watch {
  const { shown, detail } = watch
  if (!shown || shown.id === detail?.id) return watch
  return advance(watch, read(shown.id)).watch
}

const read = (id: string, more: Partial<Detail> = {}): Happening => ({
  kind: 'read',
  detail: { id, waiting: { requests: 1, complete: true }, ...more },
})

const named = new Set(['return', 'escape', 'backspace', 'space', 'pagedown', 'ctrl-c', 'up', 'down'])
function press(name: string, watch: Watch): Happening {
  const text = name === 'space' ? ' ' : named.has(name) ? '' : name
  return { kind: 'key', key: { name, text }, view: toView(watch, look), now: start }
}
const listed = (...items: Approval[]): Happening => ({ kind: 'listed', items })
const later = (ms: number): Happening => ({ kind: 'time', now: start + ms })

describe('a tool that has changed', () => {
  const drift = { kind: 'changed', difference: 'description (changed)\n  - Reads\n  + Sends \u202e away' } as const

  it('is shown with the difference, above the arguments', () => {
    const { screen } = play([listed(approval(1)), read('approval_1', { drift })])
    expect(screen).toMatch(/changes in the definition[\s\S]*- Reads[\s\S]*\+ Sends/)
    expect(screen).not.toContain('1.txt"')
    expect(screen).not.toContain('\u202e')
  })

  it('is approved by nobody before the gateway has told whether it changed', () => {
    const early = play([listed(approval(1)), 'a', 'g', later(takeBackMs)], undefined, true)
    expect(early.sent).toEqual([])
    expect(early.screen).toContain('not loaded yet')
    const known = play([read('approval_1', { drift }), 'space', 'a', later(takeBackMs)], early.watch, true)
    expect(known.sent).toMatchObject([{ said: { verdict: 'approve' } }])
    expect(play([listed(approval(1)), 'd', 'x', 'return', later(takeBackMs)], undefined, true).sent).toHaveLength(1)
  })

  it('has to be read to its end, also when its change came after the arguments were read', () => {
    const difference = Array.from({ length: 60 }, (_, line) => `  + line ${line}`).join('\n')
    const changed = read('approval_1', { drift: { kind: 'changed', difference } })
    const { sent, watch } = play([listed(approval(1)), 'space', 'space', changed, 'a', later(takeBackMs)])
    expect(sent).toEqual([])
    expect(watch.note).toContain('Read to the end')
    // The same again every few seconds changes nothing.
    const pages = ['space', changed, 'space', changed, 'space', 'space', 'space', 'a']
    expect(play([...pages, later(takeBackMs)], watch).sent).toHaveLength(1)
  })
})

describe('one key answers', () => {
  it('approves once, after the time in which it can be taken back', () => {
    const pressed = play([listed(approval(1)), 'a', later(takeBackMs - 1)])
    expect(pressed.sent).toEqual([])
    expect(pressed.screen).toContain('In 5 s: Approve Write 1.txt, once')
    expect(play([later(takeBackMs)], pressed.watch).sent).toMatchObject([
      { approval: { id: 'approval_1', hash: 'hash-1' }, said: { verdict: 'approve' } },
    ])
  })

  it('takes it back with u, and then nothing is sent', () => {
    const { sent, watch } = play([listed(approval(1)), 'a', 'u', later(takeBackMs)])
    expect(sent).toEqual([])
    expect(watch.note).toBe('Undone: nothing was sent.')
  })

  it('denies with a reason, and wants one', () => {
    expect(play([listed(approval(1)), 'd', 'return']).watch.note).toContain('Give a reason')
    const typed = play([listed(approval(1)), 'd', ...'no q', 'backspace', ...'way', 'return', later(takeBackMs)])
    expect(typed.sent).toMatchObject([{ said: { verdict: 'deny', reason: 'no way' } }])
    expect(play([listed(approval(1)), 'd', ...'no', 'escape', later(takeBackMs)])).toMatchObject({ sent: [] })
  })

  it.each([
    [['c', '3', 'return', '1', '0', 'return'], { covers: 'call', budget: 3, minutes: 10 }],
    [['t', 'return', 'return'], { covers: 'tool', budget: 5, minutes: 30 }],
    [['s', '/', 'p', 'return', '1', 'return', '1', 'return'], { covers: 'shape', same: ['/p'], budget: 1, minutes: 1 }],
  ])('approves with a grant: %j', (keys, grant) => {
    const { sent } = play([listed(approval(1)), 'g', ...keys, later(takeBackMs)])
    expect(sent).toMatchObject([{ said: { verdict: 'approve', grant } }])
  })

  it('says what a grant will allow before it is sent, and takes no number that makes no sense', () => {
    const { screen } = play([listed(approval(1)), 'g', 't', '3', 'return', 'return'])
    expect(screen.replaceAll('\n', ' ')).toContain(
      'allow 3 more calls of files_write within 30 minutes, with any arguments',
    )
    expect(play([listed(approval(1)), 'g', 't', '0', 'return']).watch.note).toContain('from 1 to 10000')
  })

  it('sends what stands before when the next one is answered, and when the person leaves with q', () => {
    const both = play([listed(approval(1), approval(2)), 'a', 'n', 'a', 'q'])
    expect(both.sent.map(({ approval }) => approval.id)).toEqual(['approval_1', 'approval_2'])
    expect(both.ended).toBe(true)
  })

  it('sends nothing when the person leaves with Ctrl+C', () => {
    expect(play([listed(approval(1)), 'a', 'ctrl-c'])).toMatchObject({ sent: [], ended: true })
    expect(play([listed(approval(1)), 'd', 'x', 'ctrl-c'])).toMatchObject({ sent: [], ended: true })
  })
})

describe('what others do meanwhile', () => {
  it('never puts another approval under the finger of whoever is about to press', () => {
    const { watch, sent } = play([listed(approval(1), approval(2)), told(answeredBy('kim', approval(1))), 'a'])
    expect(watch.shown?.id).toBe('approval_1')
    expect(watch.note).toContain('no longer waits')
    expect(play(['n', 'a', later(takeBackMs)], watch).sent).toMatchObject([{ approval: { id: 'approval_2' } }])
    expect(sent).toEqual([])
  })

  it('drops an answer that is not needed any more, and says who was faster', () => {
    const { sent, watch } = play([listed(approval(1)), 'a', told(answeredBy('kim', approval(1))), later(takeBackMs)])
    expect(sent).toEqual([])
    expect(watch.note).toContain('by kim')
  })

  it('keeps an approval open that needs a second person', () => {
    const first = { ...answeredBy('kim', approval(1)), state: 'waiting' as const }
    const { watch, screen } = play([listed(approval(1)), told(first)])
    expect(watch.open).toEqual([first])
    expect(screen).toContain('approved by  kim')
  })

  it('shows the first approval by itself, and leaves the one in view where it is', () => {
    const { watch } = play([listed(), asked(approval(2)), asked(approval(1))])
    expect(watch.shown?.id).toBe('approval_2')
    expect(watch.open.map(({ id }) => id)).toEqual(['approval_1', 'approval_2'])
  })

  it('is not undone by a list that was read earlier', () => {
    const { watch } = play([asked(approval(1)), told(answeredBy('kim', approval(1))), listed(approval(1), approval(2))])
    expect(watch.open.map(({ id }) => id)).toEqual(['approval_2'])
  })

  it('says how the call in view ended', () => {
    const call = { id: 'call_1', method: 'tools/call', tool: 'files_write', server: 'files', principal: 'agent:bot' }
    const more = { surface: 'mcp', risk: 'write', state: 'ok', startedAt: '', instance: 'ins_1' } as const
    const ended: Happening = { kind: 'call-ended', call: { ...call, ...more } }
    const { watch, screen } = play([listed(approval(1)), told(answeredBy('kim', approval(1))), ended])
    expect(watch.note).toBe('Write 1.txt: the call ended with ok.')
    expect(screen).toContain('approved, and the call ran')
  })

  it('goes round with n and p', () => {
    const all = listed(approval(1), approval(2), approval(3))
    const at = (...keys: string[]) => play([all, ...keys]).watch.shown?.id
    expect([at('n'), at('n', 'n', 'n'), at('p')]).toEqual(['approval_2', 'approval_1', 'approval_3'])
  })
})

describe('the screen', () => {
  const words = Array.from({ length: 60 }, (_, word) => `word${word}.`)
  const long = approval(1, {
    title: 'Write \u202egnp.exe',
    arguments: { hidden: 'a\u200bb', text: words.join(' '), lines: Array.from({ length: 40 }, (_, line) => line) },
  })

  it('fits into 80 columns and 24 rows whatever is asked, and shows all of it page by page', () => {
    let { watch } = play([listed(long)])
    const seen = new Set<string>()
    for (let page = 0; page < 20; page++) {
      const lines = draw(watch, look)
      expect(lines).toHaveLength(24)
      for (const line of lines) {
        expect(displayWidth(line)).toBeLessThanOrEqual(80)
        seen.add(line)
      }
      watch = advance(watch, press('space', watch)).watch
    }
    const text = [...seen].join('\n')
    for (let line = 0; line < 40; line++) expect(text).toMatch(new RegExp(`^ +${line},?$`, 'm'))
    for (const word of words) expect(text.replaceAll('\n  ↪ ', '')).toContain(word)
  })

  it('approves nothing that was not shown to its end, neither once nor with a grant', () => {
    const bad = approval(1, { arguments: { text: Array.from({ length: 300 }, () => 'ok'), last: 'the bad one' } })
    const early = play([listed(bad), 'a', later(takeBackMs), 'g', later(takeBackMs)])
    expect([early.sent, early.watch.asking]).toEqual([[], undefined])
    expect(early.watch.note).toContain('Read to the end before you approve')
    const pages = Array.from({ length: 30 }, () => 'space')
    expect(play([listed(bad), ...pages, 'a', later(takeBackMs)]).sent).toHaveLength(1)
    expect(play([listed(bad), ...pages, 'up', 'a', later(takeBackMs)]).sent).toHaveLength(1)
    // An approval that is shown anew has to be read anew.
    const two = play([listed(bad, approval(2)), ...pages, 'n', 'n', 'a', later(takeBackMs)])
    expect(two.sent).toEqual([])
    expect(play([listed(bad), 'd', 'x', 'return', later(takeBackMs)]).sent).toHaveLength(1)
  })

  it('warns of invisible and look-alike characters beside the keys, and says whether the agent waits', () => {
    const waits = (requests: number) => read('approval_1', { waiting: { requests, complete: true } })
    const { screen } = play([listed(long), waits(1)])
    expect(screen).toContain('Look closely: 1 invisible character in the arguments; 1 invisible')
    expect(screen).toContain('waiting for an answer; the agent is waiting')
    expect(play([listed(long), waits(0)]).screen).toContain('the agent is not waiting now')
    expect(play([listed(approval(1))]).screen).not.toContain('Look closely')
  })

  it('lets no value pass for a heading, and draws blanks that would push its end away', () => {
    const given = { a: `x${' '.repeat(300)}y`, b: 'arguments (1 line, 2 characters)\nnone' }
    const { screen } = play([listed(approval(1, { arguments: given }))])
    expect(screen.match(/^arguments/gm)).toHaveLength(1)
    expect(screen).toContain('"x\\u{20}(300 blanks)y"')
  })

  it('shows hidden characters, and turns nothing around', () => {
    const { screen } = play([listed(long)])
    expect(screen).toContain('"a\\u{200b}b"')
    expect(screen).toContain('Write \\u{202e}gnp.exe')
  })

  it('marks letters that look like others, in values, names and titles, as the page does', () => {
    const given = { to: 'p\u0430ypal', 'p\u0430th': '\u0441onfig' }
    const { watch } = play([listed(approval(1, { arguments: given, title: 'Pay p\u0430ypal' }))])
    const screen = draw(watch, { ...look, size: { columns: 80, rows: 40 } }).join('\n')
    expect(screen).not.toMatch(/[\u0430\u0441]/)
    for (const shown of ['"p\\u{430}ypal"', '"p\\u{430}th"', '\\u{441}onfig', 'Pay p\\u{430}ypal'])
      expect(screen).toContain(shown)
    expect(screen).toContain('characters that look like others in the arguments')
  })

  it('says who asks, why, who may answer and until when', () => {
    const { screen } = play([listed(approval(1, { approvers: ['other', 'group:ops'] }))])
    for (const fact of [
      'agent:bot, on behalf of kim',
      'no rule matches',
      'a member of the group ops',
      'in 10 min',
      'write',
    ])
      expect(screen).toContain(fact)
  })

  it('says that the gateway is away', () => {
    expect(play([{ kind: 'linked', linked: true }]).screen).not.toContain('away')
    expect(play([{ kind: 'linked', linked: false }]).screen).toContain('connection lost')
  })

  it('has no colours unless it is given some', () => {
    expect(play([listed(long), 'a']).screen).not.toContain('\u001b')
    const { watch } = play([listed(long)])
    expect(draw(watch, { ...look, colours: createColors(true) }).join('')).toContain('\u001b[33m')
  })

  it('survives a terminal that is far too small', () => {
    const tiny = { ...look, size: { columns: 10, rows: 4 } }
    expect(draw(play([listed(long)]).watch, tiny)).toHaveLength(4)
  })

  it('breaks lines by their width on the screen and loses nothing; sentences between words', () => {
    expect(wrap('漢字漢字漢字漢字漢字', 8)).toEqual(['漢字漢字', '漢字漢字', '漢字'])
    expect(wrap('', 80)).toEqual([''])
    expect(wrapWords('one two three fourteenth', 9)).toEqual(['one two', 'three', 'fourteent', 'h'])
  })
})

describe('keys', () => {
  it.each([
    ['a', { name: 'a' }, { name: 'a', text: 'a' }],
    ['A', { name: 'a' }, { name: 'A', text: 'A' }],
    ['é', {}, { name: 'é', text: 'é' }],
    [' ', { name: 'space' }, { name: 'space', text: ' ' }],
    ['\u0003', { name: 'c', ctrl: true }, { name: 'ctrl-c', text: '' }],
    ['\u0001', { name: 'a', ctrl: true }, { name: 'ctrl-a', text: '' }],
    ['\u001ba', { name: 'a', meta: true }, { name: 'alt-a', text: '' }],
    [undefined, { name: 'escape', meta: true }, { name: 'escape', text: '' }],
    ['\r', { name: 'return' }, { name: 'return', text: '' }],
    [undefined, { name: 'pagedown' }, { name: 'pagedown', text: '' }],
  ])('%j is what it writes, or by its name', (text, pressed, key) => {
    expect(toKey(text, pressed)).toEqual(key)
  })
})
