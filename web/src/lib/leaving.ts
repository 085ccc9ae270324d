/** Tasks to finish before the user signs out. */
const tasks = new Set<() => Promise<void>>()

export function beforeLeaving(task: () => Promise<void>): () => void {
  tasks.add(task)
  return () => tasks.delete(task)
}

export async function leave(): Promise<void> {
  await Promise.allSettled([...tasks].map((task) => task()))
}
