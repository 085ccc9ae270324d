/** Keeps the last lines of a talkative process within a bound of bytes. */
export type RingBuffer = {
  push(line: string): void
  lines(): string[]
  /** Lines that no longer fit. */
  dropped(): number
}

export function createRingBuffer(maxBytes: number): RingBuffer {
  let kept: string[] = []
  let bytes = 0
  let dropped = 0
  return {
    push(line) {
      const cut = line.length > maxBytes ? line.slice(0, maxBytes) : line
      kept.push(cut)
      bytes += cut.length
      let first = 0
      while (bytes > maxBytes && first < kept.length - 1) {
        bytes -= kept[first]?.length ?? 0
        first++
      }
      if (first === 0) return
      dropped += first
      kept = kept.slice(first)
    },
    lines: () => [...kept],
    dropped: () => dropped,
  }
}
