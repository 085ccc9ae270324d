import type { ClientName } from '../contract/client.ts'
import { isPlainObject } from '../documents/values.ts'
import type { Codec, Reported } from './format.ts'
import type { PlatformServer } from './platform-entry.ts'
import { findPlatforms } from './platforms.ts'
import { readDocument } from './read.ts'

/** Everything that was found in one document. */
export type ShapesReading = {
  /** The programs and forms of which the document has the shape; empty if none was recognised. */
  readonly from: readonly string[]
  readonly servers: readonly PlatformServer[]
  readonly reported: readonly Reported[]
}

/** Reads the servers of a document in all shapes that it has. `rated`: the programs that it may belong to. */
export function readAll(document: unknown, rated: readonly Codec[], client?: ClientName): ShapesReading {
  if (!isPlainObject(document)) return { from: [], servers: [], reported: [] }
  const chosen = rated.find((codec) => codec.client === client)
  const platforms = chosen ? [] : findPlatforms(document)
  const claimed = new Set(platforms.flatMap((platform) => platform.claims(document)))
  const codecs = chosen ? [chosen] : chooseCodecs(document, rated, claimed)
  const readings = [
    ...codecs.map((codec) => readDocument(codec, document)),
    ...platforms.map((platform) => platform.read(document)),
  ]
  return {
    from: [...codecs.map(({ title }) => title), ...platforms.map(({ title }) => title)],
    servers: readings.flatMap(({ servers }): readonly PlatformServer[] => servers),
    reported: readings.flatMap(({ reported }) => reported),
  }
}

/** Several programs keep their servers under the same key: the most likely one reads it. */
function chooseCodecs(document: unknown, rated: readonly Codec[], claimed: ReadonlySet<string>): Codec[] {
  const homes = new Set<string>()
  return rated.filter((codec) => {
    const home = codec.home(document)
    const [first] = home
    const isTaken = first === undefined ? claimed.size + homes.size > 0 : claimed.has(String(first))
    const key = home.join('.')
    if (isTaken || homes.has(key)) return false
    homes.add(key)
    return true
  })
}
