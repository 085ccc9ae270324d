import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, renameSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { GatewayError, isErrorCode, toGatewayError } from '../../contract/errors.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'

export type BackgroundParts = {
  readonly dataFolder: string
  readonly config: string | undefined
  readonly lingerSeconds: number
  readonly environment: NodeJS.ProcessEnv
}

/** A gateway on its way. It outlives us; we only look at how its start ends. */
export type Background = {
  /** Why it ended, if it has. */
  failure(): GatewayError | undefined
  release(): void
}

const mostLog = 5 * 1024 * 1024
const mostAnswer = 64 * 1024

export function toLogFile(dataFolder: string): string {
  return join(dataFolder, 'gateway.log')
}

/** Starts `serve` as a process of its own, in a session of its own, so that nothing that ends us ends it. */
export function startBackground(parts: BackgroundParts): Background {
  const child = trySpawn(parts)
  let failure: GatewayError | undefined
  let answer = ''
  child.on('error', (error) => {
    failure = toSpawnError(error)
  })
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (answer.length < mostAnswer) answer += text
  })
  // Not `exit`: its last words may come after that.
  child.on('close', () => {
    failure ??= toFailure(answer, toLogFile(parts.dataFolder))
  })
  child.unref()
  return { failure: () => failure, release: () => void child.stdout?.destroy() }
}

function trySpawn(parts: BackgroundParts): ChildProcess {
  try {
    return spawnServe(parts)
  } catch (error) {
    throw toSpawnError(error)
  }
}

function spawnServe({ dataFolder, config, lingerSeconds, environment }: BackgroundParts): ChildProcess {
  makePrivateFolder(dataFolder)
  const log = openLog(toLogFile(dataFolder))
  const program = process.argv[1] ?? ''
  const named = config === undefined ? [] : ['--config', config]
  const args = ['serve', '--json', '--data', dataFolder, '--linger', String(lingerSeconds), ...named]
  // What we were told about a gateway is not for the gateway, and not for the servers that it starts.
  const { SALLYPORT_TOKEN: _token, SALLYPORT_URL: _url, ...inherited } = environment
  try {
    return spawn(process.execPath, [...process.execArgv, program, ...args], {
      cwd: toHome(dataFolder),
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'pipe', log],
      env: inherited,
    })
  } finally {
    closeSync(log)
  }
}

/**
 * Where it runs depends on the data folder alone, not on which program was first: beside `.sallyport`, where `serve`
 * would find its configuration, else in the data folder itself.
 */
function toHome(dataFolder: string): string {
  return basename(dataFolder) === '.sallyport' ? dirname(dataFolder) : dataFolder
}

/** One older log is kept. */
function openLog(file: string): number {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size > mostLog) renameSync(file, `${file}.1`)
  return openSync(file, 'a', 0o600)
}

const Ready = z.object({ url: z.string(), instance: z.string() })
const Failed = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

function toFailure(answer: string, log: string): GatewayError {
  // It served, and found nobody who wanted it for long enough.
  if (Ready.safeParse(parse(answer)).success)
    return new GatewayError('shutting-down', 'The gateway has ended meanwhile')
  const { error } = Failed.safeParse(parse(answer)).data ?? {}
  if (error === undefined)
    return new GatewayError('unreachable', `The gateway that was started ended at once: ${log} says why`)
  return new GatewayError(isErrorCode(error.code) ? error.code : 'unreachable', `No gateway started: ${error.message}`)
}

function toSpawnError(error: unknown): GatewayError {
  return new GatewayError('unreachable', `No gateway could be started: ${toGatewayError(error).message}`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
