/** What still has to be done before somebody goes away. */
const errands = new Set<() => Promise<void>>()

export function beforeLeaving(errand: () => Promise<void>): () => void {
  errands.add(errand)
  return () => errands.delete(errand)
}

export async function leave(): Promise<void> {
  await Promise.allSettled([...errands].map((errand) => errand()))
}
