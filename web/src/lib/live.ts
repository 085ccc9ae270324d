import { useEffect, useState } from 'react'

export type LiveState = 'connecting' | 'live' | 'lost'

type Heard = {
  onEvent(name: string, data: unknown): void
  /** Events may have been missed: reload the shown data. */
  onGap(): void
  onLost(): void
}

const retryMs = 3000

/** Receives events of the gateway and reconnects after a lost connection. */
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
        // The browser retries on its own, except after an error answer: then we must retry.
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
    // A browser allows few connections per host, so a hidden tab closes its stream.
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
