import type { ClientName } from '../contract/client.ts'
import type { ScopedServer } from '../contract/config.ts'
import type { DocumentFormat } from '../documents/parse.ts'
import type { Path, PlainObject } from '../documents/values.ts'
import type { Draft } from './draft.ts'
import type { Entry } from './entry.ts'
import type { Notation } from './notation.ts'

/** A setting that cannot be expressed in the other format, or that was changed. `field` is a dotted key. */
export type Note = { readonly field: string; readonly message: string }

/** A definition with the fields that a file states. Not checked against the schema of a server. */
export type StatedServer = ScopedServer & { readonly transport: 'stdio' | 'http' | 'sse' }

/** A variable whose value is not in the file. `description` is text from the file. */
export type Need = { readonly name: string; readonly secret: boolean; readonly description?: string | undefined }

export type FoundServer = {
  /** The name of the server in the file; any text. */
  readonly key: string
  readonly definition: StatedServer
  readonly notes: readonly Note[]
  /** What the file says about variables. The definition may use further ones. */
  readonly needs: readonly Need[]
}

/** Something in the file that does not become a server, and why. */
export type Reported = { readonly key: string; readonly message: string }

export type Reading = { readonly servers: readonly FoundServer[]; readonly reported: readonly Reported[] }

/** Why an entry cannot become a server. */
export type Refusal = { readonly refused: string }

export type NamedServer = { readonly name: string; readonly definition: StatedServer }

/** The configuration file of one program: how its servers are read and written. */
export type Codec = {
  readonly client: ClientName
  readonly title: string
  readonly format: DocumentFormat
  readonly notation: Notation
  /** The notation, if it depends on the document. */
  notationOf?(document: unknown): Notation
  /** The path of the map that contains the servers. */
  home(document: unknown): Path
  /** How certain it is that a document of unknown origin belongs to this program. 0: it does not. */
  likeness(document: unknown): number
  read(entry: Entry, document: unknown): StatedServer | Refusal
  /** Parts of the document that contain servers which are not read. */
  report?(document: unknown): readonly Reported[]
  write(draft: Draft, document: unknown): PlainObject | Refusal
  /** The name under which a server is written, if the program does not accept every name. */
  toKey?(name: string): string
}
