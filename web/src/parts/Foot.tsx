import { type ReactNode, useEffect, useRef } from 'react'

/** The action buttons, always visible at the bottom of the page. */
export function Foot({ children }: { children: ReactNode }) {
  return (
    <div
      data-foot
      className="-mx-4 sticky bottom-14 max-h-[60dvh] overflow-y-auto border-line border-t bg-ground px-4 py-2 md:-mx-6 md:bottom-0 md:px-6 md:py-3"
    >
      {children}
    </div>
  )
}

/** Scrolls new content into view. */
export function IntoView({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // The result is not returned: it may be a promise, and React would treat it as a cleanup function.
    box.current?.scrollIntoView({ block: 'nearest' })
  }, [])
  return (
    <div ref={box} className="max-md:scroll-mb-16">
      {children}
    </div>
  )
}
