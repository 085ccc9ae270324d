/** Bytes that come in pieces and are needed whole. */
export type Pieces = {
  add(piece: Buffer): void
  bytes(): number
  /** The pieces in their order; few, however small they came. */
  list(): readonly Buffer[]
  /** All bytes as one; afterwards there are none. */
  take(): Buffer
  clear(): void
}

/** Smaller pieces are copied: each would cost some hundred bytes beside its own, and keep the buffer it was cut from. */
const smallPiece = 4096
const mostRoom = 65_536

/** Whoever sends can cut as small as they like: a megabyte in pieces of one byte must not take up hundreds of megabytes. */
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
      // Most messages are one piece, and need no copy.
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
