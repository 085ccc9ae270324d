import { z } from 'zod'
import { type ConfigProblem, formatProblem } from '../../../config/config.ts'
import type { Approval } from '../../../contract/approval.ts'
import { type GatewayError, toGatewayError } from '../../../contract/errors.ts'
import type { Gateway } from '../../../gateway/gateway.ts'
import { type RunningGateway, type ServeOptions, startGateway } from '../../../http/serve.ts'
import { adminToken } from '../../../identity/identity.ts'
import { createMasking } from '../../../masking/masking.ts'
import { toVisible } from '../../../shared/visible.ts'
import { countOf } from '../../../shared/words.ts'
import { prepareFolder } from '../../client/data-folder.ts'
import { toCommandLine, toConnectLine, toStdioLine } from '../../terminal/connect-line.ts'
import { exit } from '../../terminal/exit.ts'
import { printFailure, printMore } from '../../terminal/failure.ts'
import { ignoreReaders } from '../../terminal/pipes.ts'
import { waitForStop } from '../../terminal/stop.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { cut } from '../../terminal/width.ts'
import type { Context } from '../command.ts'
import { announceConfig } from './announce.ts'
import { createLog } from './log.ts'
import type { ServeInput } from './serve.ts'
import { createServeLog, type ServeLog } from './serve-log.ts'
import { askForTrust, listServerFiles, noteUnread } from './server-files.ts'
import { createStateReporter } from './server-states.ts'

/** Closing must end before a process manager kills the process, usually after 30 seconds. */
const closeLimit = 28_000
/** With a short `--linger`, the program that started the gateway still gets this time for its first request. */
const firstUse = 30_000

/** Runs a gateway until it is stopped. */
export async function serve({ terminal, settings }: Context, input: ServeInput): Promise<number> {
  const stop = waitForStop()
  const masking = createMasking()
  const log = createLog(masking, input.logFormat)
  // Keep running when the reader of the output closes the pipe.
  ignoreReaders()
  const told = createServeLog({ terminal, log, format: input.logFormat })
  const talk = (line: string) => told.notice(line, line)
  const started = await start({
    configFile: input.config,
    dataFolder: settings.folderHere,
    port: input.port,
    demo: input.demo,
    lingers: input.linger !== undefined,
    // A gateway that `stdio` started runs for a program that nobody asked about other files.
    serverFiles: input.linger === undefined ? listServerFiles() : [],
    log,
    masking,
  }).catch((error: unknown) => ({ failed: toGatewayError(error) }))
  async function start(options: ServeOptions): Promise<RunningGateway> {
    await prepareFolder(settings, talk)
    await announceConfig({
      explicit: input.config,
      dataFolder: settings.folderHere,
      environment: process.env,
      cwd: process.cwd(),
      talk,
    })
    return startGateway(options)
  }
  if ('failed' in started) return explainStart(terminal, started.failed)

  const { url, mcpUrl, dashboardUrl, gateway, setupUrl, unused, close } = started
  terminal.answer({ url, mcpUrl, instance: gateway.instance }, () => `sallyport ready ${url}`)
  told.notice(`MCP address: ${mcpUrl}\nDashboard: ${dashboardUrl}`, 'ready', { url, mcpUrl, dashboardUrl })
  const connecting = await toConnecting({ gateway, mcpUrl, dataFolder: settings.folderHere, greet: input.demo })
  told.notice(connecting, 'how to connect an agent', { connecting })
  // The output of a gateway that `stdio` started goes to a file, where nobody would see the link.
  const link = input.linger === undefined ? setupUrl() : undefined
  if (link) {
    const text = `Create the first administrator with this link (valid for one hour):\n  ${link}`
    told.notice(text, 'create the first administrator with this link', { setupUrl: link })
  }
  if (gateway.servers.list().length === 0) {
    const add = toCommandLine('servers add NAME --url URL', settings.folderHere)
    told.notice(`No servers are configured. Add a server with\n  ${add}`, 'no servers are configured')
  }
  reportStates(terminal, gateway, told)
  if (input.linger === undefined) noteUnread(process.cwd(), talk)
  const asking = new AbortController()
  void stop.then(() => asking.abort())
  void askForTrust({ terminal, gateway, signal: asking.signal })
  reportRejections(terminal, gateway, told)
  // A gateway that `stdio` started has no terminal.
  if (input.linger === undefined) reportApprovals(terminal, { gateway, dashboardUrl, log: told })

  await Promise.race([stop, ...toLingering(terminal, unused, input.linger)])
  told.event('Stopping after running calls have ended. Press Ctrl+C again to stop at once.', 'stopping')
  // A close that hangs or an open handle must not keep the process running.
  setTimeout(() => process.exit(exit.failed), closeLimit).unref()
  await close()
  setTimeout(() => process.exit(exit.done), 500).unref()
  return exit.done
}

function toLingering(
  terminal: Terminal,
  unused: RunningGateway['unused'],
  seconds: number | undefined,
): Promise<void>[] {
  if (seconds === undefined) return []
  const ended = unused({ milliseconds: seconds * 1000, first: firstUse })
  return [ended.then(() => terminal.talk('Stopping: no program has used this gateway for the time of --linger.'))]
}

function explainStart(terminal: Terminal, error: GatewayError): number {
  const problems = Problems.safeParse(error.details.problems).data ?? []
  if (terminal.json || problems.length === 0) printFailure(terminal, error)
  else printProblems(terminal, problems, error)
  return error.entry.exit
}

/** Prints every problem; the message of the error contains only the first. */
function printProblems(terminal: Terminal, problems: readonly ConfigProblem[], { code, entry }: GatewayError): void {
  const { red, dim } = terminal.talkColours
  for (const problem of problems) terminal.talk(`${red('error:')} ${formatProblem(problem)}`)
  terminal.talk(dim(`       ${entry.hint}`))
  printMore(terminal, code)
}

const Problems = z.array(
  z.object({
    file: z.string(),
    line: z.number(),
    key: z.string(),
    message: z.string(),
    suggestion: z.string().optional(),
  }),
)

type Connecting = { gateway: Gateway; mcpUrl: string; dataFolder: string; greet: boolean }

/** A demo prints a complete command with a token. Each start replaces that token until an agent has used it. */
async function toConnecting({ gateway, mcpUrl, dataFolder, greet }: Connecting): Promise<string> {
  const made = greet ? await makeFirstToken(gateway) : undefined
  const again = made?.replaces ? ' (the command printed at the previous start no longer works)' : ''
  const http = made
    ? `Connect an agent, for example Claude Code${again}:\n  ${toConnectLine(mcpUrl, made.token)}`
    : `Connect an agent: create a token with\n  ${toCommandLine('tokens create --agent my-agent', dataFolder)}`
  return `${http}\nOr configure this command in an MCP client; it creates its own token:\n  ${toStdioLine(dataFolder)}`
}

const firstAgent = 'my-agent'

/** A token is shown only once, so an unused token is replaced by a new one. */
async function makeFirstToken({ tokens }: Gateway): Promise<{ token: string; replaces: boolean } | undefined> {
  const all = tokens.list(adminToken)
  if (all.some(({ lastUsedAt }) => lastUsedAt !== undefined)) return undefined
  const known = all.filter(({ agent, revokedAt }) => agent === firstAgent && revokedAt === undefined)
  // Another token of this agent may already be in use.
  if (known.length > 1) return undefined
  for (const { id } of known) await tokens.revoke(adminToken, id)
  const { token } = await tokens.create(adminToken, { agent: firstAgent })
  return { token, replaces: known.length > 0 }
}

/** Reports the servers that are already connected, then every change. */
function reportStates(terminal: Terminal, gateway: Gateway, log: ServeLog): void {
  const report = createStateReporter({ colours: terminal.talkColours, log, now: Date.now })
  for (const server of gateway.servers.list()) report(server)
  gateway.events.on('server-changed', ({ server }) => report(server))
}

/** At most this many approvals are printed in one minute; the rest is counted. */
const mostApprovalLines = 5
const approvalWindowMs = 60_000
const longestTitle = 100

type Reporting = { readonly gateway: Gateway; readonly dashboardUrl: string; readonly log: ServeLog }

/** One line with the link for each call that waits for approval, without its arguments. */
function reportApprovals({ talkColours }: Terminal, { gateway, dashboardUrl, log }: Reporting): void {
  const pages = `${dashboardUrl.replace(/\/+$/, '')}/approvals`
  let since = Number.NEGATIVE_INFINITY
  let told = 0
  let untold = 0
  gateway.events.on('approval-requested', ({ approval, elsewhere }) => {
    if (elsewhere) return
    const now = performance.now()
    if (now - since >= approvalWindowMs) {
      since = now
      told = 0
    }
    if (told < mostApprovalLines) {
      told += 1
      const { id, tool, principal } = approval
      const line = `${talkColours.yellow('waiting')} for approval: ${toAsked(approval)}: ${pages}/${id}`
      log.event(line, 'a call waits for approval', { approval: id, tool, principal, url: `${pages}/${id}` })
      return
    }
    if (untold === 0) setTimeout(reportRest, since + approvalWindowMs - now).unref()
    untold += 1
  })

  function reportRest(): void {
    const line = `${countOf(untold, 'more call')} ${untold === 1 ? 'waits' : 'wait'} for approval, see ${pages}`
    log.event(line, 'more calls wait for approval', { calls: untold, url: pages })
    untold = 0
  }
}

function toAsked({ tool, principal }: Approval): string {
  return cut(toVisible(`${tool}, called by ${principal}`.replace(/\s+/g, ' ')), longestTitle)
}

function reportRejections(terminal: Terminal, gateway: Gateway, log: ServeLog): void {
  let broken = false
  gateway.events.on('config-changed', ({ changed }) => {
    if (broken && gateway.config.rejected().length === 0) {
      broken = false
      log.event('The configuration is valid again and in use.', 'the configuration is valid again and in use')
    }
    if (changed.includes('listen') && gateway.status().config.restart.length > 0)
      log.event('listen has changed: restart the gateway to use it.', 'listen has changed and needs a restart')
  })
  gateway.events.on('config-rejected', ({ file, problems }) => {
    broken = true
    const { red } = terminal.talkColours
    const lines = [
      red('The changed configuration is not used:'),
      ...problems.map((problem) => `  ${toVisible(problem)}`),
    ]
    log.event(lines.join('\n'), 'the changed configuration is not used', { file, problems })
  })
}
