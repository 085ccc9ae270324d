import type { Masking } from '../masking/masking.ts'
import { createAnswer } from '../wire/answer.ts'
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
      return createAnswer(answer.kind, masked.bytes, undefined, masked.found)
    },
  }
}
