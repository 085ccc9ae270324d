import { claudeCode } from './clients/claude-code.ts'
import type { Codec } from './format.ts'

export type { Codec, FoundServer, NamedServer, Need, Note, Reading, Reported, StatedServer } from './format.ts'
export { toVariableName } from './notation.ts'
export { readDocument } from './read.ts'

const codecs: readonly Codec[] = [claudeCode]

/** The programs that a document of unknown origin may belong to, the most likely one first. */
export function recognise(document: unknown): Codec[] {
  const rated = codecs.map((codec) => ({ codec, likeness: codec.likeness(document) }))
  const likely = rated.filter(({ likeness }) => likeness > 0)
  return likely.sort((left, right) => right.likeness - left.likeness).map(({ codec }) => codec)
}
