import { setTimeout as sleep } from 'node:timers/promises'
import type { ScopeKey } from '../../../contract/scope.ts'
import { findDownloader, type ServerDefinition } from '../../../contract/server.ts'
import type { Client } from '../../client/client.ts'
import type { Spinner } from '../../terminal/terminal.ts'

const askEvery = 2000

type Started = { readonly name: string; readonly scope: ScopeKey | undefined }

/** Shows the progress of a slow server start, until `work` ends. */
export async function showingStart<Result>(
  { client, spinner }: { client: Client; spinner: Spinner },
  server: Started,
  work: () => Promise<Result>,
): Promise<Result> {
  const done = new AbortController()
  const watching = watch(client, spinner, server, done.signal)
  try {
    return await work()
  } finally {
    done.abort()
    await watching
  }
}

/** The same for a definition that is not saved: it has no name, so its progress cannot be read from the gateway. */
export async function showingTrial<Result>(
  spinner: Spinner,
  definition: ServerDefinition,
  work: () => Promise<Result>,
): Promise<Result> {
  const downloader = findDownloader(definition)
  if (downloader === undefined) return work()
  const startedAt = performance.now()
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    spinner.update(`starting for ${seconds} s, ${downloader} may be downloading the package`)
  }, askEvery)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

async function watch(client: Client, spinner: Spinner, { name, scope }: Started, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(askEvery, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    // A failure here only means that there is no progress to show: errors are reported by `work`.
    const found = await client.servers.get({ params: { name }, query: { scope } }).catch(() => undefined)
    if (found?.state === 'connecting' && found.progress !== undefined) spinner.update(`${name}: ${found.progress}`)
  }
}
