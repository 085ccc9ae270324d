import { fillerFor } from '../servers/payload.ts'

const quote = 0x22

/** Reads the id at the start or the end of an answer: the two generations of the SDK write it there. */
export function idOf(message: Buffer): number | undefined {
  const head = /^\s*\{(?:"jsonrpc":"2\.0",)?"id":(\d+),/.exec(message.toString('latin1', 0, 64))
  const tail = () => /"id":(\d+)(?:,"jsonrpc":"2\.0")?\}\s*$/.exec(message.toString('latin1', message.length - 64))
  const found = (head ?? tail())?.[1]
  return found === undefined ? undefined : Number(found)
}

/** Checks every byte of the text. Nothing is parsed, so that the check is cheap. */
export function checkCall(message: Buffer, asked: { id: number; nonce: string; bytes: number }): void {
  if (idOf(message) !== asked.id) throw wrong('has a wrong id', message)
  const start = message.indexOf(`"text":"${asked.nonce}`)
  if (start === -1) throw wrong('does not contain the nonce of its call', message)
  const from = start + '"text":"'.length + asked.nonce.length
  const filler = fillerFor(asked.bytes)
  const end = from + filler.length
  if (end >= message.length || filler.compare(message, from, end) !== 0 || message[end] !== quote) {
    throw wrong('has a wrong text', message)
  }
}

export function checkList(message: Buffer, asked: { id: number; count: number }): void {
  if (idOf(message) !== asked.id) throw wrong('has a wrong id', message)
  const count = namesOf(message).length
  if (count !== asked.count) throw wrong(`lists ${count} tools instead of ${asked.count}`, message)
}

/** Tool names of servers, without the gateway's own tools. */
export function namesOf(message: Buffer): string[] {
  const { result }: { result?: { tools?: { name: string }[] } } = JSON.parse(message.toString())
  return (result?.tools ?? []).map(({ name }) => name).filter((name) => !name.startsWith('sallyport_'))
}

function wrong(how: string, message: Buffer): Error {
  return new Error(`An answer ${how}: ${message.toString('utf8', 0, 300)}`)
}
