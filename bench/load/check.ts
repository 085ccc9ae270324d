import { fillerFor } from '../servers/payload.ts'

const quote = 0x22

/** The id of an answer: before everything else, or behind it, where the two generations of the SDK write it. */
export function idOf(message: Buffer): number | undefined {
  const head = /^\s*\{(?:"jsonrpc":"2\.0",)?"id":(\d+),/.exec(message.toString('latin1', 0, 64))
  const tail = () => /"id":(\d+)(?:,"jsonrpc":"2\.0")?\}\s*$/.exec(message.toString('latin1', message.length - 64))
  const found = (head ?? tail())?.[1]
  return found === undefined ? undefined : Number(found)
}

/** Every byte of the text must be the one that this very call asked for; nothing is parsed, so that checking is cheap. */
export function checkCall(message: Buffer, asked: { id: number; nonce: string; bytes: number }): void {
  if (idOf(message) !== asked.id) throw wrong('carries another id', message)
  const start = message.indexOf(`"text":"${asked.nonce}`)
  if (start === -1) throw wrong('does not carry the mark of its call', message)
  const from = start + '"text":"'.length + asked.nonce.length
  const filler = fillerFor(asked.bytes)
  const end = from + filler.length
  if (end >= message.length || filler.compare(message, from, end) !== 0 || message[end] !== quote) {
    throw wrong('has another text', message)
  }
}

export function checkList(message: Buffer, asked: { id: number; count: number }): void {
  if (idOf(message) !== asked.id) throw wrong('carries another id', message)
  const count = namesOf(message).length
  if (count !== asked.count) throw wrong(`lists ${count} tools instead of ${asked.count}`, message)
}

/** Those of servers: a gateway may have tools of its own beside them. */
export function namesOf(message: Buffer): string[] {
  const { result }: { result?: { tools?: { name: string }[] } } = JSON.parse(message.toString())
  return (result?.tools ?? []).map(({ name }) => name).filter((name) => !name.startsWith('sallyport_'))
}

function wrong(how: string, message: Buffer): Error {
  return new Error(`An answer ${how}: ${message.toString('utf8', 0, 300)}`)
}
