import type { ReactNode } from 'react'

/** A text with several lines. It has no scroll box, so that the complete text is on the page. */
export function TextBlock({ label, children }: { label: string; children: ReactNode }) {
  return (
    <section aria-label={label} className="rounded-md border border-line border-l-4 bg-sunken p-2">
      <pre className="whitespace-pre-wrap break-words font-mono text-12 [overflow-wrap:anywhere]">{children}</pre>
    </section>
  )
}
