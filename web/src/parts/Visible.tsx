import { toPieces } from '../lib/visible.ts'

/** Text with what cannot be seen drawn as its code point: what is shown is what runs. */
export function Visible({ text }: { text: string }) {
  return toPieces(text).map((piece, index) =>
    piece.mark === undefined ? (
      piece.text
    ) : (
      <mark
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text never change their places
        key={index}
        title={piece.why}
        className="mx-px whitespace-nowrap rounded-sm border border-danger bg-danger-ground px-0.5 font-mono text-12 text-danger"
      >
        {piece.mark}
      </mark>
    ),
  )
}
