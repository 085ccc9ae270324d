import { useEffect, useRef } from 'react'

/** The end of something that has to be seen whole. Tells when it has come into view, above the buttons at the foot. */
export function EndMark({ onSeen }: { onSeen(): void }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current
    if (!element) return
    const look = () => {
      const foot = document.querySelector('[data-foot]')?.getBoundingClientRect().top
      if (element.getBoundingClientRect().top <= Math.min(innerHeight, foot ?? innerHeight)) onSeen()
    }
    // The text above it may grow, and scroll events do not bubble.
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
