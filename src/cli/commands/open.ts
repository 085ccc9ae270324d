import { spawn } from 'node:child_process'
import type { Command } from 'commander'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { findUrl } from '../client/address.ts'
import { exit } from '../terminal/exit.ts'
import { addCommand, type Run } from './command.ts'

const startMs = 5000

export function addOpen(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'open [page]',
    summary: 'open the dashboard, or one of its pages, in the browser',
    options: [['--print', 'print the address instead']],
    notes: ['PAGE is the part of the address after the host, such as approvals or approvals/approval_1m4x….'],
    examples: ['sallyport open', 'sallyport open approvals', 'sallyport open --print'],
    input: z.object({ page: z.string().optional(), print: z.boolean().default(false) }),
    async run({ terminal, settings }, { page = '', print }) {
      const url = toPageUrl(await findUrl(settings), page)
      terminal.answer({ url }, () => url)
      if (!print) await openBrowser(url)
      return exit.done
    },
  })
}

/** Refuses a PAGE that would lead to another host. */
function toPageUrl(gateway: string, page: string): string {
  const base = new URL(gateway)
  const path = page.replace(/^\/+/, '')
  const url = URL.canParse(path, base.href) ? new URL(path, base) : undefined
  if (url && url.origin === base.origin && !/[\s\\]/.test(page)) return url.href
  throw new GatewayError('request-invalid', `${page} is not a page of the dashboard: give a path such as approvals`)
}

/** No shell is used. On Windows, `cmd` opens addresses and would read `&` as the end of a command. */
function toOpener(url: string): readonly [command: string, ...args: string[]] {
  if (process.env.BROWSER) return [process.env.BROWSER, url]
  if (process.platform === 'darwin') return ['open', url]
  if (process.platform === 'win32') return ['cmd', '/c', 'start', '""', url.replaceAll('&', '^&')]
  return ['xdg-open', url]
}

/** The browser keeps running after this command; only a failure in the first moment is reported. */
async function openBrowser(url: string): Promise<void> {
  const [command, ...args] = toOpener(url)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (reason: string) =>
    reject(
      new GatewayError(
        'request-invalid',
        `${command} could not open the browser (${reason}): open the address yourself`,
      ),
    )
  const child = spawn(command, args, { stdio: 'ignore', detached: true })
  const timer = setTimeout(resolve, startMs)
  child.on('error', (error) => fail('code' in error ? String(error.code) : error.message))
  child.on('exit', (code) => (code === 0 || code === null ? resolve() : fail(`it ended with ${code}`)))
  await promise.finally(() => clearTimeout(timer))
  child.unref()
}
