/** `1 tool`, `3 tools` */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${nounFor(count, noun, plural)}`
}

export function nounFor(count: number, noun: string, plural = `${noun}s`): string {
  return count === 1 ? noun : plural
}
