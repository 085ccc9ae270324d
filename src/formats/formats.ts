import type { ClientName } from '../contract/client.ts'
import { parseForeign } from '../documents/parse.ts'
import { claudeCode } from './clients/claude-code.ts'
import { claudeDesktop } from './clients/claude-desktop.ts'
import { cline } from './clients/cline.ts'
import { codex } from './clients/codex.ts'
import { cursor } from './clients/cursor.ts'
import { geminiCli } from './clients/gemini-cli.ts'
import { goose } from './clients/goose.ts'
import { libreChat } from './clients/librechat.ts'
import { opencode } from './clients/opencode.ts'
import { vscode } from './clients/vscode.ts'
import { windsurf } from './clients/windsurf.ts'
import { zed } from './clients/zed.ts'
import type { Codec, Reading } from './format.ts'
import { readDocument } from './read.ts'
import { readAll, type ShapesReading } from './shapes.ts'
import { describeFaults } from './write.ts'

export type { Codec, FoundServer, NamedServer, Need, Note, Reading, Reported, StatedServer } from './format.ts'
export { toVariableName } from './notation.ts'
export type { PlatformServer } from './platform-entry.ts'
export { readDocument } from './read.ts'
export type { ShapesReading } from './shapes.ts'
export { type Removal, removeServer, type Writing, type WrittenServer, writeServers } from './write.ts'

const codecs: Readonly<Record<ClientName, Codec>> = {
  'claude-code': claudeCode,
  'claude-desktop': claudeDesktop,
  cursor,
  vscode,
  opencode,
  codex,
  'gemini-cli': geminiCli,
  goose,
  zed,
  windsurf,
  cline,
  librechat: libreChat,
}

export function getCodec(client: ClientName): Codec {
  return codecs[client]
}

/** The servers in the configuration file of a program; a message if the text cannot be read. */
export function readClient(client: ClientName, text: string): (Reading & { readonly ok: true }) | Failure {
  const codec = codecs[client]
  const parsing = parseForeign(codec.format, text)
  if (!parsing.ok) return { ok: false, message: describeFaults(parsing.faults) }
  return { ok: true, ...readDocument(codec, parsing.parsed.value) }
}

type Failure = { readonly ok: false; readonly message: string }

/** The programs that a document of unknown origin may belong to, the most likely one first. */
export function recognise(document: unknown): Codec[] {
  const rated = Object.values(codecs).map((codec) => ({ codec, likeness: codec.likeness(document) }))
  const likely = rated.filter(({ likeness }) => likeness > 0)
  return likely.sort((left, right) => right.likeness - left.likeness).map(({ codec }) => codec)
}

/** The servers of a document of a program or a platform, in all shapes that it has. */
export function readShapes(document: unknown, client?: ClientName): ShapesReading {
  return readAll(document, recognise(document), client)
}
