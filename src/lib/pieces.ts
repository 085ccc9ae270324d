/** Collects bytes that arrive in pieces and are needed as one buffer. */
export type Pieces = {
  add(piece: Buffer): void
  bytes(): number
  /** The pieces in order. Small pieces are merged, so the list is short. */
  list(): readonly Buffer[]
  /** All bytes as one buffer. Empties the collection. */
  take(): Buffer
  clear(): void
}

/**
 * Smaller pieces are copied into a shared buffer: each one would use some hundred extra bytes and keep its whole source
 * buffer in memory.
 */
const smallPiece = 4096
const mostRoom = 65_536

/** A sender can choose tiny pieces: a megabyte in pieces of one byte must not use hundreds of megabytes of memory. */
export function createPieces(): Pieces {
  let pieces: Buffer[] = []
  let bytes = 0
  let room = nothing
  /** The part of `room` that is not yet in `pieces`. */
  let [from, to] = [0, 0]

  function flush(): void {
    if (to > from) pieces.push(room.subarray(from, to))
    from = to
  }

  function copy(piece: Buffer): void {
    if (piece.length > room.length - to) {
      flush()
      room = Buffer.allocUnsafeSlow(Math.min(mostRoom, Math.max(smallPiece, bytes)))
      from = 0
      to = 0
    }
    to += piece.copy(room, to)
  }

  function list(): readonly Buffer[] {
    flush()
    return pieces
  }

  function clear(): void {
    pieces = []
    bytes = 0
    room = nothing
    from = 0
    to = 0
  }

  return {
    add(piece) {
      bytes += piece.length
      // Most messages arrive as one piece and need no copy.
      if (bytes > piece.length && piece.length < smallPiece) return copy(piece)
      flush()
      pieces.push(piece)
    },
    bytes: () => bytes,
    list,
    take() {
      const all = list()
      const [first = nothing] = all
      const whole = all.length > 1 ? Buffer.concat(all, bytes) : first
      clear()
      return whole
    },
    clear,
  }
}

const nothing: Buffer = Buffer.alloc(0)
