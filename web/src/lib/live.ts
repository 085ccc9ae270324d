import { useEffect, useState } from 'react'

export type LiveState = 'connecting' | 'live' | 'lost'

type Heard = {
  onEvent(name: string, data: unknown): void
  /** Something may have been missed: what is shown has to be read again. */
  onGap(): void
  onLost(): void
}

const retryMs = 3000

/** Tells whoever listens of every event; a stream that breaks is opened again. */
export function useLive(events: readonly string[], { onEvent, onGap, onLost }: Heard): LiveState {
  const [state, setState] = useState<LiveState>('connecting')
  const names = events.join(',')
  useEffect(() => {
    let source: EventSource | undefined
    let retry: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      const opened = new EventSource(`/api/events?names=${names}`)
      source = opened
      opened.onopen = () => {
        setState('live')
        onGap()
      }
      opened.onerror = () => {
        setState('lost')
        onLost()
        // The browser tries again by itself, unless it was refused: then nobody else would.
        if (opened.readyState === EventSource.CLOSED) retry = setTimeout(open, retryMs)
      }
      opened.addEventListener('reset', onGap)
      for (const name of names.split(',')) {
        opened.addEventListener(name, ({ data }) => onEvent(name, JSON.parse(data)))
      }
    }
    const close = () => {
      clearTimeout(retry)
      source?.close()
      source = undefined
    }
    // A browser has few lines to one place, and a tab that nobody looks at must not keep one from the others.
    const onLook = () => {
      if (document.hidden) close()
      else if (!source) open()
    }
    onLook()
    document.addEventListener('visibilitychange', onLook)
    return () => {
      document.removeEventListener('visibilitychange', onLook)
      close()
    }
  }, [names, onEvent, onGap, onLost])
  return state
}
