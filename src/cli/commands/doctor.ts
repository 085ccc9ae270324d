import type { Command } from 'commander'
import { z } from 'zod'
import { toVisible } from '../../lib/text.ts'
import { addCommand, type Context, type Run } from '../command.ts'
import { checkConfiguration } from '../doctor/configuration.ts'
import type { Finding } from '../doctor/finding.ts'
import { askGateway, checkGateway, checkStates, listConnected } from '../doctor/gateway.ts'
import { checkDataFolder, checkNode, checkPort } from '../doctor/machine.ts'
import { checkServers } from '../doctor/servers.ts'
import { exit } from '../exit.ts'
import { findGatewayFile } from '../settings.ts'
import type { Terminal } from '../terminal.ts'

const Input = z.object({
  config: z.string().optional(),
  port: z.coerce.number().int().min(0).max(65_535).optional(),
})

export function addDoctor(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'doctor',
    summary: 'what is wrong, and the command that mends it; works with and without a running gateway',
    options: [
      ['--config <file>', 'the configuration to look at (default: the one that serve would use)'],
      ['--port <number>', 'the port that serve would be given'],
    ],
    examples: ['sallyport doctor', 'sallyport doctor --config sallyport.yaml --json'],
    input: Input,
    async run(context, input) {
      const findings = await examine(context, input)
      const healthy = findings.every((finding) => finding.status !== 'problem')
      context.terminal.answer({ healthy, findings }, () => renderFindings(context.terminal, findings))
      return healthy ? exit.done : exit.failed
    },
  })
}

/** One after the other from the ground up: each check can rely on what the ones before have found. */
async function examine(
  { settings, request }: Context,
  { config: explicit, port }: z.infer<typeof Input>,
): Promise<Finding[]> {
  const local = findGatewayFile(settings.dataFolder)
  const expected = settings.url !== undefined || local !== undefined
  const running = await askGateway(expected, () => request('Asking the gateway', (client) => client.status()))
  const used = running.kind === 'answers' ? running.status.config.file : undefined
  const configuration = await checkConfiguration(explicit ?? used, settings.dataFolder)
  const findings = [checkNode(), ...configuration.findings, ...checkDataFolder(settings.dataFolder, local)]
  const { config, file } = configuration
  const listen = { host: config?.listen.host ?? '127.0.0.1', port: port ?? config?.listen.port ?? 4777 }
  const ours = running.kind === 'answers' && running.status.instance === local?.instance ? local.url : undefined
  findings.push(await checkPort(listen, ours))
  findings.push(checkGateway(running))
  if (config && file !== undefined) {
    findings.push(...(await checkServers({ config, file, environment: process.env }, listConnected(running))))
  }
  const explained = new Set(findings.filter((finding) => finding.status === 'problem').map((finding) => finding.check))
  return [...findings, ...checkStates(running, explained)]
}

function renderFindings(terminal: Terminal, findings: readonly Finding[]): string {
  const { green, yellow, red, cyan, dim } = terminal.colours
  const marks = { ok: green('ok     '), note: cyan('note   '), warning: yellow('warning'), problem: red('problem') }
  const width = Math.max(...findings.map((finding) => finding.check.length))
  const lines = findings.flatMap(({ check, status, message, fix }) => [
    `${marks[status]}  ${toVisible(check).padEnd(width)}  ${toVisible(message)}`,
    ...(fix === null ? [] : [dim(`${' '.repeat(width + 11)}fix: ${toVisible(fix)}`)]),
  ])
  const problems = findings.filter((finding) => finding.status === 'problem').length
  const summary =
    problems === 0 ? green('No problems.') : red(`${problems} ${problems === 1 ? 'problem' : 'problems'}.`)
  return [...lines, '', summary].join('\n')
}
