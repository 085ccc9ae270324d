const newline = 0x0a

/** Splits a byte stream into lines, without a limit: only for trusted programs. */
export function createLines(onLine: (line: Buffer) => void): { push(chunk: Buffer): void } {
  let rest: Buffer[] = []
  return {
    push(chunk) {
      let from = 0
      for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
        rest.push(chunk.subarray(from, at))
        const [first = chunk, ...more] = rest
        onLine(more.length === 0 ? first : Buffer.concat(rest))
        rest = []
        from = at + 1
      }
      if (from < chunk.length) rest.push(chunk.subarray(from))
    },
  }
}
