import type { Approval, ApprovalDetail, Verdict } from '../../../../contract/approval.ts'
import type { Call } from '../../../../contract/call.ts'
import { GrantWish } from '../../../../contract/grant.ts'
import { describeAnswered, describeWish, stateWords } from '../approval-view.ts'

/** An answer that has not been sent yet. */
export type Said = {
  readonly verdict: Verdict
  readonly reason?: string | undefined
  readonly grant?: GrantWish | undefined
}

/** An answer that is sent at `until`, unless the person presses `u` (undo). */
export type Pending = { readonly approval: Approval; readonly said: Said; readonly until: number }

/** The prompt that the person is answering. */
export type Asking =
  | { readonly step: 'covers' }
  | { readonly step: 'reason' | 'same'; readonly text: string }
  | { readonly step: 'calls'; readonly text: string; readonly wish: Pick<GrantWish, 'covers' | 'same'> }
  | { readonly step: 'minutes'; readonly text: string; readonly wish: Omit<GrantWish, 'minutes'> }

export type Watch = {
  readonly person: string
  readonly linked: boolean
  /** Waiting approvals, oldest first. */
  readonly open: readonly Approval[]
  /** The approval on the screen. It stays after the answer, so that the next key does not answer another approval. */
  readonly shown: Approval | undefined
  /** How many of its lines are scrolled off at the top. */
  readonly top: number
  /** The last line that was on the screen. Approving requires that all lines were shown. */
  readonly reached: number
  /** Fields of the shown approval that lists and events do not contain; undefined until they are read. */
  readonly detail: Detail | undefined
  readonly asking: Asking | undefined
  readonly pending: Pending | undefined
  /** The last event, as a message for the person. */
  readonly note: string
  /** Results of this person's answers, printed after the screen closes. */
  readonly told: readonly string[]
  /** Ids of approvals that no longer wait. A list that was requested earlier may still contain them. */
  readonly settled: ReadonlySet<string>
}

export type Detail = Pick<ApprovalDetail, 'id' | 'waiting' | 'drift'>

/** Lines of the approval, rows on the screen, and lines that must be shown before it can be approved. */
export type View = { readonly lines: number; readonly rows: number; readonly needed: number }

/** A call in an event; events do not contain arguments. */
export type EndedCall = Omit<Call, 'arguments'>

export type Happening =
  | { readonly kind: 'listed'; readonly items: readonly Approval[] }
  | {
      readonly kind: 'approval'
      readonly name: 'approval-requested' | 'approval-answered'
      readonly approval: Approval
    }
  | { readonly kind: 'call-ended'; readonly call: EndedCall }
  | { readonly kind: 'linked'; readonly linked: boolean }
  | { readonly kind: 'read'; readonly detail: Detail }
  | { readonly kind: 'sent'; readonly approval: Approval }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'key'; readonly key: Key; readonly view: View; readonly now: number }
  | { readonly kind: 'time'; readonly now: number }

/** `text` is the typed text; `name` names a key that types no text. */
export type Key = { readonly name: string; readonly text: string }

/** The next state, the answer to send now, and whether the person quits. */
export type Step = { readonly watch: Watch; readonly send?: Pending | undefined; readonly end?: true }

/** The same time as on the approvals page. */
export const takeBackMs = 5000
const mostSettled = 10_000
export const usual = { calls: 5, minutes: 30 }

export function createWatch(person: string): Watch {
  return {
    person,
    linked: false,
    open: [],
    shown: undefined,
    top: 0,
    reached: 0,
    detail: undefined,
    asking: undefined,
    pending: undefined,
    note: '',
    told: [],
    settled: new Set(),
  }
}

/** A pure function: state and event in, next state and answer out. */
export function advance(watch: Watch, happening: Happening): Step {
  switch (happening.kind) {
    case 'listed':
      return { watch: toListed(watch, happening.items) }
    case 'approval':
      return { watch: toChanged(watch, happening.approval) }
    case 'call-ended':
      return { watch: toEnded(watch, happening.call) }
    case 'linked':
      return { watch: { ...watch, linked: happening.linked } }
    case 'read':
      return { watch: toRead(watch, happening.detail) }
    case 'sent': {
      const line = describeAnswered(happening.approval)
      const next = toChanged(watch, happening.approval)
      return { watch: { ...next, note: line, told: [...watch.told, line] } }
    }
    case 'refused':
      return { watch: { ...watch, note: happening.message, told: [...watch.told, happening.message] } }
    case 'time':
      return watch.pending && happening.now >= watch.pending.until ? sendNow(watch) : { watch }
    case 'key':
      return watch.asking
        ? onTyping(watch, watch.asking, happening)
        : onKey(toReached(watch, happening.view), happening)
  }
}

/** A tool change is shown above the arguments and moves them, so the lines shown before do not count as read. */
function toRead(watch: Watch, detail: Detail): Watch {
  const known = watch.detail?.id === detail.id ? watch.detail.drift : undefined
  if (known?.difference === detail.drift?.difference) return { ...watch, detail: { ...detail, drift: known } }
  return { ...watch, detail, ...(watch.shown?.id === detail.id && { top: 0, reached: 0 }) }
}

/** A new list replaces all approvals: an approval that is not in it no longer waits. */
function toListed(watch: Watch, items: readonly Approval[]): Watch {
  const open = inOrder(items.filter(({ id, state }) => state === 'waiting' && !watch.settled.has(id)))
  return showSomething({ ...watch, open })
}

function toChanged(watch: Watch, approval: Approval): Watch {
  const { id, state } = approval
  const others = watch.open.filter((each) => each.id !== id)
  const isOpen = state === 'waiting' && !watch.settled.has(id)
  const next = { ...watch, open: isOpen ? inOrder([...others, approval]) : others }
  if (isOpen) return showSomething({ ...next, shown: watch.shown?.id === id ? approval : watch.shown })
  const settled = new Set([...watch.settled, id].slice(-mostSettled))
  const isShown = watch.shown?.id === id
  return {
    ...next,
    settled,
    ...(isShown && { shown: approval, asking: undefined }),
    ...(watch.pending?.approval.id === id && {
      pending: undefined,
      note: `Your answer was not needed: ${stateWords[state]}${toWhom(approval)}.`,
    }),
  }
}

function toWhom({ answers }: Approval): string {
  const last = answers.at(-1)
  return last ? ` by ${last.by}` : ''
}

function toEnded(watch: Watch, call: EndedCall): Watch {
  const { shown } = watch
  if (shown?.call !== call.id) return watch
  const used = shown.state === 'approved' ? { ...shown, state: 'used' as const } : shown
  return { ...watch, shown: used, note: `${shown.title}: the call ended with ${call.state}.` }
}

function showSomething(watch: Watch): Watch {
  return watch.shown ? watch : { ...watch, shown: watch.open[0], top: 0, reached: 0 }
}

function inOrder(approvals: readonly Approval[]): Approval[] {
  return approvals.toSorted((a, b) => a.requestedAt.localeCompare(b.requestedAt) || a.id.localeCompare(b.id))
}

type Pressed = Extract<Happening, { kind: 'key' }>

/** Lines on the screen at a key press count as shown, if all lines above them were shown too. */
function toReached(watch: Watch, { rows }: View): Watch {
  return watch.top <= watch.reached ? { ...watch, reached: Math.max(watch.reached, watch.top + rows) } : watch
}

function onKey(watch: Watch, { key, view, now }: Pressed): Step {
  const bottom = Math.max(0, view.lines - view.rows)
  const scrolled = (by: number) => ({ watch: { ...watch, top: Math.min(bottom, Math.max(0, watch.top + by)) } })
  switch (key.name) {
    case 'ctrl-c':
      return { watch, end: true }
    case 'q':
      return { ...(watch.pending ? sendNow(watch) : { watch }), end: true }
    case 'a':
      return ifSeen(watch, view, (approval) => later(watch, approval, { verdict: 'approve' }, now))
    case 'g':
      return ifSeen(watch, view, () => ({ watch: { ...watch, asking: { step: 'covers' }, note: '' } }))
    case 'd':
      return ifOpen(watch, () => ({ watch: { ...watch, asking: { step: 'reason', text: '' }, note: '' } }))
    case 'u':
      return { watch: watch.pending ? { ...watch, pending: undefined, note: 'Undone: nothing was sent.' } : watch }
    case 'n':
      return { watch: toNeighbour(watch, 1) }
    case 'p':
      return { watch: toNeighbour(watch, -1) }
    case 'space':
    case 'pagedown':
      return scrolled(Math.max(1, view.rows - 1))
    case 'b':
    case 'pageup':
      return scrolled(-Math.max(1, view.rows - 1))
    case 'down':
      return scrolled(1)
    case 'up':
      return scrolled(-1)
    default:
      return { watch }
  }
}

/** Runs `act` if the shown approval waits and has no pending answer. */
function ifOpen(watch: Watch, act: (approval: Approval) => Step): Step {
  const { shown, pending } = watch
  if (!shown) return { watch }
  if (pending?.approval.id === shown.id) return { watch: { ...watch, note: 'Already answered; u undoes the answer.' } }
  if (shown.state === 'waiting' && watch.open.some(({ id }) => id === shown.id)) return act(shown)
  return { watch: { ...watch, note: 'This approval no longer waits; n shows the next.' } }
}

/** Runs `act` only if the whole approval was shown. */
function ifSeen(watch: Watch, { needed, rows }: View, act: (approval: Approval) => Step): Step {
  return ifOpen(watch, (approval) => {
    // The details say whether the tool has changed.
    if (watch.detail?.id !== approval.id)
      return { watch: { ...watch, note: 'The details of this approval are not loaded yet; try again in a moment.' } }
    if (watch.reached >= needed) return act(approval)
    const note = `Read to the end before you approve: lines 1 to ${watch.reached || rows} of ${needed} were shown. Space turns the page.`
    return { watch: { ...watch, note } }
  })
}

/** Makes the answer pending. The pending answer before it is sent now, because the person did not undo it. */
function later(watch: Watch, approval: Approval, said: Said, now: number): Step {
  const pending = { approval, said, until: now + takeBackMs }
  return { watch: { ...watch, asking: undefined, pending, note: '' }, send: watch.pending }
}

function sendNow(watch: Watch): Step {
  return { watch: { ...watch, pending: undefined, note: 'Sending …' }, send: watch.pending }
}

function toNeighbour(watch: Watch, by: 1 | -1): Watch {
  const { open, shown } = watch
  if (open.length === 0)
    return shown?.state === 'waiting' ? watch : { ...watch, shown: undefined, top: 0, reached: 0, note: '' }
  const at = open.findIndex(({ id }) => id === shown?.id)
  // An approval that no longer waits is not in the list: continue with the first approval requested after it.
  const after = open.findIndex(({ requestedAt }) => requestedAt > (shown?.requestedAt ?? ''))
  const from = at === -1 ? (after === -1 ? open.length : after) - (by === 1 ? 1 : 0) : at
  const next = open[(from + by + open.length) % open.length]
  return { ...watch, shown: next, top: 0, reached: 0, note: '' }
}

function onTyping(watch: Watch, asking: Asking, { key, now }: Pressed): Step {
  if (key.name === 'ctrl-c') return { watch, end: true }
  if (key.name === 'escape') return { watch: { ...watch, asking: undefined, note: '' } }
  if (asking.step === 'covers') return onCovers(watch, key)
  if (key.name === 'return') return onEntered(watch, asking, now)
  const text = key.name === 'backspace' ? [...asking.text].slice(0, -1).join('') : asking.text + key.text
  return { watch: { ...watch, asking: { ...asking, text: text.slice(0, 2000) }, note: '' } }
}

function onCovers(watch: Watch, { name }: Key): Step {
  if (name === 's') return { watch: { ...watch, asking: { step: 'same', text: '' } } }
  const covers = name === 'c' ? 'call' : name === 't' ? 'tool' : undefined
  return { watch: covers ? { ...watch, asking: { step: 'calls', text: '', wish: { covers } } } : watch }
}

function onEntered(watch: Watch, asking: Exclude<Asking, { step: 'covers' }>, now: number): Step {
  const wrong = (note: string): Step => ({ watch: { ...watch, asking: { ...asking, text: '' }, note } })
  const text = asking.text.trim()
  const { shown } = watch
  if (!shown) return { watch: { ...watch, asking: undefined } }
  switch (asking.step) {
    case 'reason':
      if (text === '') return wrong('Give a reason for the agent. Esc cancels.')
      return later(watch, shown, { verdict: 'deny', reason: text }, now)
    case 'same': {
      const same = text.split(/\s+/).filter(Boolean)
      if (same.length === 0 || !same.every((pointer) => pointer.startsWith('/')))
        return wrong('Write arguments as /NAME, separated by spaces. Esc cancels.')
      return { watch: { ...watch, asking: { step: 'calls', text: '', wish: { covers: 'shape', same } } } }
    }
    case 'calls': {
      const budget = GrantWish.shape.budget.safeParse(toNumber(text, usual.calls))
      if (!budget.success) return wrong('Must be a number from 1 to 10000. Esc cancels.')
      return {
        watch: { ...watch, asking: { step: 'minutes', text: '', wish: { ...asking.wish, budget: budget.data } } },
      }
    }
    case 'minutes': {
      const minutes = GrantWish.shape.minutes.safeParse(toNumber(text, usual.minutes))
      if (!minutes.success) return wrong('Must be a number from 1 to 43200. Esc cancels.')
      return later(watch, shown, { verdict: 'approve', grant: { ...asking.wish, minutes: minutes.data } }, now)
    }
  }
}

function toNumber(text: string, otherwise: number): number {
  return text === '' ? otherwise : Number(text)
}

/** `Approve, with 3 more calls of …` */
export function describePending({ approval, said }: Pending): string {
  if (said.verdict === 'deny') return `Deny ${approval.title}: ${said.reason ?? ''}`
  const grant = said.grant ? `, and allow ${describeWish(approval.tool, said.grant)}` : ', once'
  return `Approve ${approval.title}${grant}`
}
