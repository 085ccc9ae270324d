import type { Command } from 'commander'
import { exit } from '../terminal/exit.ts'
import { addCommand, noInput, type Run } from './command.ts'

export function addSetupLink(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'setup-link',
    summary: 'print a new link that makes the first administrator, while there is none',
    notes: ['The link works once and for an hour; the one before it ends. Whoever opens it becomes the administrator.'],
    examples: ['sallyport setup-link', 'sallyport setup-link --json'],
    input: noInput,
    async run({ terminal, request }) {
      const link = await request('Asking the gateway', (client) => client.people.setupLink())
      terminal.answer(link, () => link.url)
      terminal.next('open it in a browser within the hour')
      return exit.done
    },
  })
}
