import { useEffect, useState } from 'react'

export type LiveState = 'connecting' | 'live' | 'lost'

/** Tells whoever listens of every event; a stream that breaks is opened again and brings what was missed. */
export function useLive(events: readonly string[], onEvent: (name: string) => void): LiveState {
  const [state, setState] = useState<LiveState>('connecting')
  const names = events.join(',')
  useEffect(() => {
    let source: EventSource | undefined
    let retry: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      source = new EventSource(`/api/events?names=${names}`)
      source.onopen = () => setState('live')
      source.onerror = () => {
        setState('lost')
        // The browser tries again by itself, unless it was refused: then nobody else would.
        if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, 5000)
      }
      for (const name of names.split(',')) source.addEventListener(name, () => onEvent(name))
    }
    open()
    return () => {
      clearTimeout(retry)
      source?.close()
    }
  }, [names, onEvent])
  return state
}
