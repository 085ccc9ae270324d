import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { programPath } from '../support/programs.ts'
import type { Order, Outcome } from './command-host.ts'

export const bin = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))
const bundle = new URL('../../dist/cli.js', import.meta.url).href

/** They end with the worker that started them. */
const idle: ChildProcess[] = []

/** Runs a command line in a host of this worker that is idle, or in a new one: a command may wait for another. */
export async function runInHost(order: Order): Promise<Outcome> {
  const host = idle.pop() ?? startHost()
  const outcome = await ask(host, order)
  idle.push(host)
  return outcome
}

function startHost(): ChildProcess {
  const host = spawn(process.execPath, [programPath('test/cli/command-host'), bin, bundle], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  host.unref()
  host.channel?.unref()
  return host
}

async function ask(host: ChildProcess, order: Order): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
  const fail = (code: number | null) => reject(new Error(`${order.args.join(' ')} ended its host with ${code}`))
  host.once('message', (outcome: Outcome) => resolve(outcome))
  host.once('exit', fail)
  host.channel?.ref()
  host.send(order)
  try {
    return await promise
  } finally {
    host.off('exit', fail)
    host.channel?.unref()
  }
}
