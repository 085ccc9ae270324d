import { expect, it } from 'vitest'
import { createMasking } from '../../src/masking/masking.ts'
import { maskAnswers } from '../../src/servers/masked-peer.ts'
import { createAnswer } from '../../src/wire/answer.ts'
import type { Peer } from '../../src/wire/peer.ts'

const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U'
const options = { signal: new AbortController().signal, timeoutMs: 1000 }

function peerThatAnswers(result: object): Peer {
  return {
    request: async () => createAnswer('result', Buffer.from(JSON.stringify(result))),
    notify() {},
    receive() {},
    fail() {},
    failRaw() {},
    inFlight: () => 0,
    counters: { unmatched: 0, late: 0, invalid: 0 },
    close() {},
  }
}

it('hides what an answer holds, but not what only its server gets back', async () => {
  const told: number[] = []
  const peer = maskAnswers(
    peerThatAnswers({ text: jwt, requestState: jwt, nextCursor: jwt, inner: { nextCursor: jwt } }),
    createMasking(),
    (found) => void told.push(found),
  )
  const answer = await peer.request('tools/list', {}, options)
  expect(answer.value()).toEqual({
    text: '[secret]',
    requestState: jwt,
    nextCursor: jwt,
    inner: { nextCursor: '[secret]' },
  })
  expect([answer.masked, told]).toEqual([4, [4]])
})

it('leaves an answer that holds nothing as it came, byte for byte', async () => {
  const clean = peerThatAnswers({ text: 'hello' })
  const before = await clean.request('tools/list', {}, options)
  const peer = maskAnswers({ ...clean, request: async () => before }, createMasking(), () => expect.unreachable())
  expect(await peer.request('tools/list', {}, options)).toBe(before)
})
