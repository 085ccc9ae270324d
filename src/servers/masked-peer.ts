import { scanObject } from '../lib/json.ts'
import type { Masked, Masking } from '../masking/masking.ts'
import { type Answer, createAnswer } from '../wire/answer.ts'
import type { Peer } from '../wire/peer.ts'

/** Wraps a peer so that secrets in the answers of the server are masked before any other code reads them. */
export function maskAnswers(peer: Peer, masking: Masking, onFound: (found: number) => void): Peer {
  return {
    ...peer,
    async request(method, params, options) {
      const answer = await peer.request(method, params, options)
      const masked = masking.json(answer.bytes) ?? (await masking.jsonSlowly(answer.bytes))
      if (masked.found === 0) return answer
      if (!options.caller) onFound(masked.found) // a call records its own masked secrets
      return createAnswer(answer.kind, withUnmasked(answer, masked), undefined, masked.found)
    },
  }
}

/** These values only go back to the same server, so they stay unmasked. Signed ones often look like a token. */
const unmaskedMembers = ['requestState', 'nextCursor']

/** Works on bytes because an answer may be nested too deeply to be parsed. */
function withUnmasked(answer: Answer, { bytes }: Masked): Buffer {
  const kept = answer.members().filter(({ key }) => unmaskedMembers.includes(key))
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
