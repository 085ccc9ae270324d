import { useEffect, useRef, useState } from 'react'

const title = 'Sallyport'

/** Shows the number of waiting approvals in the tab's title and icon. The icons are files, as the security policy requires. */
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

/** Browser notifications, turned on by a button. They contain no names of tools or agents and no arguments. */
export function useNotices(count: number): Notices {
  const [on, setOn] = useState(() => localStorage.getItem(key) === 'on')
  const [permission, setPermission] = useState(() => ('Notification' in window ? Notification.permission : undefined))
  const before = useRef(count)
  const isOn = on && permission === 'granted'
  useEffect(() => {
    const more = count > before.current
    before.current = count
    if (!more || !isOn || !document.hidden) return
    const body = count === 1 ? '1 call waits for approval.' : `${count} calls wait for approval.`
    const notice = new Notification(title, { body, tag: 'waiting', icon: '/icon.svg' })
    notice.onclick = () => {
      window.focus()
      notice.close()
    }
  }, [count, isOn])
  const toggle = async () => {
    const next = !isOn
    // Asked only after a click: browsers permanently block pages that ask without one.
    const allowed = next ? await Notification.requestPermission() : permission
    setPermission(allowed)
    setOn(next)
    localStorage.setItem(key, next ? 'on' : 'off')
  }
  if (permission === undefined) return { state: 'impossible', toggle }
  if (permission === 'denied') return { state: 'refused', toggle }
  return { state: isOn ? 'on' : 'off', toggle }
}
