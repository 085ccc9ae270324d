import { type ReactNode, useEffect, useRef } from 'react'

/** What one can do here: at the end of the page, and on a phone in reach of the thumb. */
export function Foot({ children }: { children: ReactNode }) {
  return (
    <div className="max-md:sticky max-md:bottom-14 max-md:-mx-4 max-md:border-line max-md:border-t max-md:bg-ground max-md:px-4 max-md:py-2">
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
