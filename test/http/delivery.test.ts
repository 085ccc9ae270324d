import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { type Account, createDelivery, type Delivery } from '../../src/lib/delivery.ts'
import { poll } from '../support/gateway.ts'

const megabyte = 1024 * 1024

function accountOf(most: number): Account {
  let bytes = 0
  return {
    buffered: () => bytes,
    hasRoom: (more) => bytes + more <= most,
    add(more) {
      bytes += more
    },
  }
}

type Stage = AsyncDisposable & { readonly socket: Socket; readonly responses: ServerResponse[] }

/** A client that asks without reading, and what serves it. */
async function serve(
  account: Account,
  requests: number,
  work: (response: ServerResponse, delivery: Delivery) => void,
): Promise<Stage> {
  const responses: ServerResponse[] = []
  const server = createServer((_, response) => {
    responses.push(response)
    work(response, createDelivery({ response, account, clock: systemClock, patience: 60_000 }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const socket = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1')
  socket.on('error', () => {})
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(requests))
  await poll(() => responses.length === requests || undefined)
  return {
    socket,
    responses,
    async [Symbol.asyncDispose]() {
      socket.destroy()
      server.closeAllConnections()
      server.close()
    },
  }
}

const heldBy = ({ responses }: Stage) => responses.reduce((sum, each) => sum + each.writableLength, 0)

it('holds no more than the account has room for, which answers that are not counted would exceed', async () => {
  const answer = Buffer.alloc(megabyte)
  const counting = accountOf(16 * megabyte)
  await using right = await serve(counting, 40, (response, delivery) => {
    try {
      delivery.takeAnswer(answer.length)
      response.end(answer)
    } catch {
      response.end('refused')
    }
    delivery.settle()
  })
  expect(heldBy(right)).toBeLessThan(17 * megabyte)
  expect(counting.buffered()).toBeGreaterThan(8 * megabyte)

  const ignored = accountOf(16 * megabyte)
  await using wrong = await serve(ignored, 40, (response) => void response.end(answer))
  expect(heldBy(wrong)).toBeGreaterThan(20 * megabyte)

  right.socket.destroy()
  await poll(() => counting.buffered() === 0 || undefined)
})

it('tells that an answer has left once the client has read it, not when it was written', async () => {
  const answer = Buffer.alloc(12 * megabyte)
  let left = 0
  await using stage = await serve(accountOf(64 * megabyte), 1, (response, delivery) => {
    delivery.onEnd(() => left++)
    response.end(answer)
    delivery.settle()
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(left).toBe(0)
  stage.socket.resume()
  await poll(() => left === 1 || undefined)
})

it('tells at once that a small answer has left, and that one will never leave', async () => {
  let left = 0
  await using small = await serve(accountOf(megabyte), 1, (response, delivery) => {
    delivery.onEnd(() => left++)
    response.end('small')
    delivery.settle()
    expect(left).toBe(1)
  })
  small.socket.destroy()
  await using gone = await serve(accountOf(megabyte), 1, (response, delivery) => {
    response.destroy()
    delivery.onEnd(() => left++)
  })
  gone.socket.destroy()
  expect(left).toBe(2)
})

it('takes no more of a stream than a megabyte that was not read, and gives it back when the client leaves', async () => {
  const account = accountOf(64 * megabyte)
  let stream: Delivery | undefined
  await using stage = await serve(account, 1, (_, delivery) => {
    stream = delivery
    delivery.settle()
  })
  const event = `data: ${'x'.repeat(60_000)}\n\n`
  // The system takes some megabytes before the client has to read.
  let written = 0
  while (stream?.write(event) && written < 1000) {
    written++
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(written).toBeLessThan(1000)
  expect(account.buffered()).toBeLessThanOrEqual(megabyte)
  stage.socket.resume()
  await poll(() => account.buffered() === 0 || undefined)
  expect(stream?.write(event)).toBe(true)
  stage.socket.destroy()
  await poll(() => account.buffered() === 0 || undefined)
  expect(stream?.write(event)).toBe(false)
})

it('gives a stream no room while the principal has too much unread elsewhere', async () => {
  const account = accountOf(megabyte)
  let stream: Delivery | undefined
  await using _stage = await serve(account, 1, (_, delivery) => {
    stream = delivery
  })
  account.add(megabyte)
  const event = `data: ${'x'.repeat(60_000)}\n\n`
  // Of many streams each could have a large part otherwise.
  expect(stream?.write(Buffer.alloc(100_000))).toBe(false)
  expect(stream?.write(event)).toBe(true)
  expect(stream?.write(event)).toBe(false)
})
