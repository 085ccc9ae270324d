import type { Failure } from '../lib/api.ts'

/** Leads to the section about the code of an error, in a new tab, so that nothing on this page is lost. */
export function DocsLink({ failure }: { failure: Failure }) {
  if (failure.docs === undefined) return null
  return (
    <a href={failure.docs} target="_blank" rel="noreferrer" className="underline">
      More about this error
    </a>
  )
}
