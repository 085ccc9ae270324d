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

/** A gateway process that is starting. It keeps running when this process ends. */
export type Background = {
  /** The reason if the process has ended; undefined while it runs. */
  failure(): GatewayError | undefined
  release(): void
}

const mostLog = 5 * 1024 * 1024
const mostAnswer = 64 * 1024

export function toLogFile(dataFolder: string): string {
  return join(dataFolder, 'gateway.log')
}

/** Starts `serve` detached, so that it survives the end of this process and of its terminal. */
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
  // Not `exit`: output may arrive after it.
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
  // Token and address are for this process; the gateway and its servers must not inherit them.
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
 * Working folder of the gateway. It depends only on the data folder, not on the program that started it: the folder that
 * contains `.sallyport`, where `serve` finds its configuration, else the data folder.
 */
function toHome(dataFolder: string): string {
  return basename(dataFolder) === '.sallyport' ? dirname(dataFolder) : dataFolder
}

/** Renames a large log file, and keeps one old file. */
function openLog(file: string): number {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size > mostLog) renameSync(file, `${file}.1`)
  return openSync(file, 'a', 0o600)
}

const Ready = z.object({ url: z.string(), instance: z.string() })
const Failed = z.object({ error: z.object({ code: z.string(), message: z.string() }) })

function toFailure(answer: string, log: string): GatewayError {
  // It was ready and ended again, because it was not used.
  if (Ready.safeParse(parse(answer)).success)
    return new GatewayError('shutting-down', 'The gateway ended before it was used')
  const { error } = Failed.safeParse(parse(answer)).data ?? {}
  if (error === undefined) return new GatewayError('unreachable', `The gateway could not start: see ${log}`)
  return new GatewayError(
    isErrorCode(error.code) ? error.code : 'unreachable',
    `The gateway could not start: ${error.message}`,
  )
}

function toSpawnError(error: unknown): GatewayError {
  return new GatewayError('unreachable', `The gateway could not start: ${toGatewayError(error).message}`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
