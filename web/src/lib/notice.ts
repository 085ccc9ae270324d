import { useEffect, useRef, useState } from 'react'

const title = 'Sallyport'

/** The number that waits, in the title and the icon of the tab. The icons are files: the security policy allows no other. */
export function useTab(count: number): void {
  useEffect(() => {
    document.title = count > 0 ? `(${count}) ${title}` : title
    const icon = document.querySelector('link[rel="icon"]')
    icon?.setAttribute('href', iconOf(count))
  }, [count])
}

function iconOf(count: number): string {
  if (count === 0) return '/icon.svg'
  return `/waiting-${count > 9 ? 'many' : count}.svg`
}

const key = 'notifications'

export type Notices = { readonly state: 'impossible' | 'off' | 'on' | 'refused'; toggle(): Promise<void> }

/** Notices of the browser, for those who asked for them by the button. They name no tool, no agent and no argument. */
export function useNotices(count: number): Notices {
  const [on, setOn] = useState(() => localStorage.getItem(key) === 'on')
  const [permission, setPermission] = useState(() => ('Notification' in window ? Notification.permission : undefined))
  const before = useRef(count)
  const isOn = on && permission === 'granted'
  useEffect(() => {
    const more = count > before.current
    before.current = count
    if (!more || !isOn || !document.hidden) return
    const body = count === 1 ? 'One call waits for approval.' : `${count} calls wait for approval.`
    const notice = new Notification(title, { body, tag: 'waiting', icon: '/icon.svg' })
    notice.onclick = () => {
      window.focus()
      notice.close()
    }
  }, [count, isOn])
  const toggle = async () => {
    const next = !isOn
    // Asked for here and nowhere else: a page that asks by itself is refused for good.
    const allowed = next ? await Notification.requestPermission() : permission
    setPermission(allowed)
    setOn(next)
    localStorage.setItem(key, next ? 'on' : 'off')
  }
  if (permission === undefined) return { state: 'impossible', toggle }
  if (permission === 'denied') return { state: 'refused', toggle }
  return { state: isOn ? 'on' : 'off', toggle }
}
