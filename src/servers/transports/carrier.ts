import type { GatewayError } from '../../contract/errors.ts'
import type { Carrier } from '../../wire/peer.ts'

/** What every way to a server tells the link above it. */
export type CarrierParts = {
  readonly maxMessageBytes: number
  /** One message; `origin` is the request on whose stream it came, where the way knows. */
  onMessage(message: Buffer, origin: number | undefined): void
  /** The answer to a request, by its raw id, was too long to keep. */
  onTooLong(id: string, error: GatewayError): void
  /** The standing stream was interrupted and is back: what was said meanwhile is lost. */
  onGap(): void
  /** The way is gone for good. */
  onClose(error: GatewayError): void
}

/** One way to a server: a child process, Streamable HTTP, or HTTP with a separate event stream. */
export type ServerCarrier = Carrier & {
  /** Opens the standing stream for notifications, where the way has one of its own. */
  readonly listen: ((headers: Readonly<Record<string, string>>) => void) | undefined
  /** Tells the server that the session is over, where there is one. */
  endSession(headers: Readonly<Record<string, string>>): Promise<void>
  /** Ends it and proves that it ended. */
  close(): Promise<void>
  readonly pid?: number
}
