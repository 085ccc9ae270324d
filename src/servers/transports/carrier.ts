import type { GatewayError } from '../../contract/errors.ts'
import type { Carrier } from '../../wire/peer.ts'

/** The callbacks of a transport to its link. */
export type CarrierParts = {
  readonly maxMessageBytes: number
  /** One message. `origin` is the request on whose stream it arrived, if the transport knows it. */
  onMessage(message: Buffer, origin: number | undefined): void
  /** The answer to the request with this raw id exceeds the size limit. */
  onTooLong(id: string, error: GatewayError): void
  /** The stream of notifications was interrupted and is open again: notifications in between are lost. */
  onGap(): void
  /** The transport has ended and does not recover. */
  onClose(error: GatewayError): void
}

/** One transport to a server: a child process, Streamable HTTP, or HTTP with a separate event stream. */
export type ServerCarrier = Carrier & {
  /** Opens the stream of notifications, if the transport has a separate one. */
  readonly listen: ((headers: Readonly<Record<string, string>>) => void) | undefined
  /** Ends the MCP session at the server, if there is one. */
  endSession(headers: Readonly<Record<string, string>>): Promise<void>
  /** Resolves when the transport has ended. */
  close(): Promise<void>
  readonly pid?: number
}
