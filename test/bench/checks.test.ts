import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { checkCall } from '../../bench/load/check.ts'
import { runSlice } from '../../bench/load/slice.ts'
import { createAnswers, echoTools } from '../../bench/servers/answers.ts'

const answers = createAnswers(echoTools)

/** Answers as the echo server does, to a request that somebody may have tampered with. */
function echoed(request: object): Buffer {
  return Buffer.concat([...(answers(JSON.stringify(request)) ?? [])])
}

const asked = { id: 7, nonce: 'n000000000000007', bytes: 10_000 }
const call = (id: number, nonce: string, size: number) => ({
  id,
  method: 'tools/call',
  params: { arguments: { nonce, size } },
})

it('takes the very answer that was asked for', () => {
  expect(() => checkCall(echoed(call(7, asked.nonce, 10_000)), asked)).not.toThrow()
})

it.each([
  ['of another id', call(8, asked.nonce, 10_000), 'wrong id'],
  ["with another caller's mark", call(7, 'n000000000000008', 10_000), 'nonce'],
  ['that is too short', call(7, asked.nonce, 9999), 'wrong text'],
  ['that is too long', call(7, asked.nonce, 10_075), 'wrong text'],
])('takes no answer %s', (_how, request, reason) => {
  expect(() => checkCall(echoed(request), asked)).toThrow(reason)
})

it('takes no answer in which one byte differs', () => {
  const answer = echoed(call(7, asked.nonce, 10_000))
  answer[5000] = 0x23
  expect(() => checkCall(answer, asked)).toThrow('wrong text')
})

it('fails when one of many callers gets the answer of another', async () => {
  let calls = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (body.includes('tools/call')) calls += 1
    const heard = calls === 20 ? body.replace(/n0+(\d)/, 'n9$1') : body
    const pieces = answers(heard === '' ? '{}' : heard)
    response.writeHead(pieces ? 200 : 202, { 'content-type': 'application/json' })
    response.end(pieces && Buffer.concat([...pieces]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const way = { kind: 'http' as const, url: `http://127.0.0.1:${port}/mcp`, headers: {} }
  const asking = { kind: 'call' as const, tools: ['echo'], bytes: 100 }
  const slice = runSlice({ kind: 'slice', way, asking, inFlight: 4, warmUpMs: 0, measureMs: 5000 })
  await expect(slice).rejects.toThrow('does not contain the nonce of its call')
  server.close()
})
