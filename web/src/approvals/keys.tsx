import { useEffect, useRef } from 'react'
import { Button } from '../parts/Button.tsx'

/**
 * `deliberate`: the page had the focus for a moment, and no other key was typed just before. An agent can open the page
 * while a person is typing elsewhere, and that key must not approve.
 */
export type Keys = Readonly<Record<string, (deliberate: boolean) => void>>

const list = [
  ['j', 'k', 'next and previous approval'],
  ['Enter', '', 'open the focused approval'],
  ['o', '', 'show long arguments completely'],
  ['a', '', 'approve once'],
  ['g', '', 'approve and allow more'],
  ['d', '', 'deny with a reason'],
  ['u', '', 'undo the last decision'],
  ['?', '', 'show these keys'],
] as const

const commands = new Set<string>(list.flat())
const inFrontMs = 600
const apartMs = 400

/** Keyboard shortcuts; ignored while the focus is in a text field. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    let inFrontSince = Date.now()
    let typedAt = 0
    const onFocus = () => {
      inFrontSince = Date.now()
    }
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target)) return
      const action = Object.hasOwn(latest.current, event.key) ? latest.current[event.key] : undefined
      const now = Date.now()
      if (event.key.length === 1 && !commands.has(event.key)) typedAt = now
      if (!action) return
      event.preventDefault()
      action(now - inFrontSince >= inFrontMs && now - typedAt >= apartMs)
    }
    addEventListener('keydown', onKey)
    addEventListener('focus', onFocus)
    return () => {
      removeEventListener('keydown', onKey)
      removeEventListener('focus', onFocus)
    }
  }, [])
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, dialog, [contenteditable]') !== null
}

export function KeysDialog({ open, onClose }: { open: boolean; onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (open) dialog.current?.showModal()
    else dialog.current?.close()
  }, [open])
  return (
    <dialog
      ref={dialog}
      onClose={onClose}
      aria-label="Keys"
      className="m-auto rounded-lg border border-line bg-panel p-6 text-ink backdrop:bg-black/40"
    >
      <dl className="mb-4 grid grid-cols-[auto_1fr] gap-x-4 gap-y-2">
        {list.map(([key, second, words]) => (
          <div key={key} className="contents">
            <dt className="flex gap-1">
              {[key, second].filter(Boolean).map((name) => (
                <kbd key={name} className="rounded border border-line px-1.5 font-mono text-12">
                  {name}
                </kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <Button onClick={onClose}>Close</Button>
    </dialog>
  )
}
