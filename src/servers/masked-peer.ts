import { scanObject } from '../lib/json.ts'
import type { Masked, Masking } from '../masking/masking.ts'
import { type Answer, createAnswer } from '../wire/answer.ts'
import type { Peer } from '../wire/peer.ts'

/** Our end of a conversation, through which no hidden value gets: what a server answers is masked before anybody looks at it. */
export function maskAnswers(peer: Peer, masking: Masking, onFound: (found: number) => void): Peer {
  return {
    ...peer,
    async request(method, params, options) {
      const answer = await peer.request(method, params, options)
      const masked = masking.json(answer.bytes) ?? (await masking.jsonSlowly(answer.bytes))
      if (masked.found === 0) return answer
      if (!options.caller) onFound(masked.found) // a call tells of it itself
      return createAnswer(answer.kind, withMarks(answer, masked), undefined, masked.found)
    },
  }
}

/** What the gateway gives back to the same server, and to nobody else. A signed one often looks like a token. */
const ownMarks = ['requestState', 'nextCursor']

/** Put back as bytes: an answer may be nested too deep to be read as a whole. */
function withMarks(answer: Answer, { bytes }: Masked): Buffer {
  const kept = answer.members().filter(({ key }) => ownMarks.includes(key))
  if (kept.length === 0) return bytes
  const pieces: Buffer[] = []
  let at = 0
  for (const { key, start, end } of scanObject(bytes)) {
    const own = kept.find((member) => member.key === key)
    if (!own) continue
    pieces.push(bytes.subarray(at, start), answer.bytes.subarray(own.start, own.end))
    at = end
  }
  return Buffer.concat([...pieces, bytes.subarray(at)])
}
