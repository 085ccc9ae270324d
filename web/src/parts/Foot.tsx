import { type ReactNode, useEffect, useRef } from 'react'

/** What one can do here: always in view at the end of the page, and on a phone in reach of the thumb. */
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

/** Something that somebody asked for is brought to where they look. */
export function IntoView({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // Not returned: some browsers answer with a promise, which is nothing to clean up.
    box.current?.scrollIntoView({ block: 'nearest' })
  }, [])
  return (
    <div ref={box} className="max-md:scroll-mb-16">
      {children}
    </div>
  )
}
