import type { ClientName } from '../contract/client.ts'
import { claudeCode } from './clients/claude-code.ts'
import type { Codec } from './format.ts'
import { readAll, type ShapesReading } from './shapes.ts'

export type { Codec, FoundServer, NamedServer, Need, Note, Reading, Reported, StatedServer } from './format.ts'
export { toVariableName } from './notation.ts'
export type { PlatformServer } from './platform-entry.ts'
export { readDocument } from './read.ts'
export type { ShapesReading } from './shapes.ts'

const codecs: readonly Codec[] = [claudeCode]

/** The programs that a document of unknown origin may belong to, the most likely one first. */
export function recognise(document: unknown): Codec[] {
  const rated = codecs.map((codec) => ({ codec, likeness: codec.likeness(document) }))
  const likely = rated.filter(({ likeness }) => likeness > 0)
  return likely.sort((left, right) => right.likeness - left.likeness).map(({ codec }) => codec)
}

/** The servers of a document of a program or a platform, in all shapes that it has. */
export function readShapes(document: unknown, client?: ClientName): ShapesReading {
  return readAll(document, recognise(document), client)
}
