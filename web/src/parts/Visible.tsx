import { type Piece, toPieces } from '../lib/visible.ts'

/** Shows text in the order in which it is sent, with invisible characters as code points. */
export function Visible({ text }: { text: string }) {
  // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text never change their places
  return toPieces(text).map((piece, index) => <Drawn key={index} piece={piece} />)
}

function Drawn({ piece: { text, mark, why, order } }: { piece: Piece }) {
  if (order === 'apart') return <bdi>{text}</bdi>
  if (order === 'forced') return <bdo dir="ltr">{text}</bdo>
  if (mark === undefined) return text
  return (
    <mark
      title={why}
      className="mx-px whitespace-nowrap rounded-sm border border-danger bg-danger-ground px-0.5 font-mono text-12 text-danger"
    >
      {mark}
    </mark>
  )
}
