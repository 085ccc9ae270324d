import type { ReactNode } from 'react'

/** Text of any length in a bounded place, to be scrolled by keyboard too. */
export function ScrollBox({
  label,
  children,
  className = '',
}: {
  label: string
  children: ReactNode
  className?: string
}) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the rest of the text is out of reach for a keyboard
      tabIndex={0}
      className={`overflow-auto ${className}`}
    >
      <pre className="whitespace-pre-wrap break-words font-mono text-12">{children}</pre>
    </section>
  )
}
