import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { memoryOf } from '../lib/proc.ts'
import { percentile } from '../lib/statistics.ts'
import { endless, type Gateway, recording, startGateway } from './gateway.ts'
import type { Row } from './row.ts'

const floodMs = 8000

/** Measures other agents' calls while one server writes an endless line. */
export async function measureEndlessLine(): Promise<Row[]> {
  const gateway = await startGateway({ rec: recording, endless })
  try {
    const before = await measureCalls(gateway, 2000)
    const flooding = gateway.call('endless_flood').catch(() => undefined)
    const beside = await measureCalls(gateway, floodMs)
    await Promise.race([flooding, wait(1000)])
    return [
      ['endless stdio line: memory growth of the gateway', `${(beside.most - before.most).toFixed(0)} MB`],
      [
        "endless stdio line: p99 of other agents' calls",
        `${beside.p99.toFixed(1)} ms (${before.p99.toFixed(1)} before)`,
      ],
    ]
  } finally {
    await gateway.close()
  }
}

async function measureCalls(gateway: Gateway, milliseconds: number): Promise<{ p99: number; most: number }> {
  const until = performance.now() + milliseconds
  const times: number[] = []
  let most = 0
  while (performance.now() < until) {
    times.push((await gateway.call('rec_read_thing')).ms)
    most = Math.max(most, memoryOf(gateway.pid))
    await wait(5)
  }
  return {
    p99: percentile(
      times.toSorted((a, b) => a - b),
      99,
    ),
    most,
  }
}

const unread = { connections: 100, bytes: 4_000_000 }

/** Clients that ask for large answers and never read them. */
export async function measureUnreadAnswers(): Promise<Row[]> {
  const gateway = await startGateway({ rec: recording })
  const { hostname, port, host } = new URL(gateway.url)
  const body = JSON.stringify({ arguments: { bytes: unread.bytes } })
  const lines = [
    'POST /api/tools/rec_big/call HTTP/1.1',
    `host: ${host}`,
    `authorization: Bearer ${gateway.token}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
  ]
  const before = memoryOf(gateway.pid)
  const sockets = Array.from({ length: unread.connections }, () => {
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.pause()
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
    return socket
  })
  try {
    let most = before
    for (let second = 0; second < 10; second++) {
      await wait(1000)
      most = Math.max(most, memoryOf(gateway.pid))
    }
    const what = `${unread.connections} unread answers of ${unread.bytes / 1_000_000} MB: memory growth of the gateway`
    return [[what, `${(most - before).toFixed(0)} MB`]]
  } finally {
    for (const socket of sockets) socket.destroy()
    await gateway.close()
  }
}
