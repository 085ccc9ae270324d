import { useEffect, useRef } from 'react'

/** Marks the end of a text that must be read completely. Reports when it is visible above the buttons. */
export function EndMark({ onSeen }: { onSeen(): void }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current
    if (!element) return
    const look = () => {
      const foot = document.querySelector('[data-foot]')?.getBoundingClientRect().top
      if (element.getBoundingClientRect().top <= Math.min(innerHeight, foot ?? innerHeight)) onSeen()
    }
    // The text above may grow. Scroll events do not bubble, so they are captured.
    const resized = new ResizeObserver(look)
    resized.observe(document.body)
    document.addEventListener('scroll', look, { capture: true, passive: true })
    addEventListener('resize', look)
    look()
    return () => {
      resized.disconnect()
      document.removeEventListener('scroll', look, { capture: true })
      removeEventListener('resize', look)
    }
  }, [onSeen])
  return <div ref={place} className="h-px" />
}
