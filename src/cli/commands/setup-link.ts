import type { Command } from 'commander'
import { exit } from '../terminal/exit.ts'
import { addCommand, noInput, type Run } from './command.ts'

export function addSetupLink(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'setup-link',
    summary: 'print a new link that creates the first administrator, if none exists',
    notes: [
      'The link works once and expires after an hour. The previous link stops working.',
      'Keep the link private: the person who opens it becomes the administrator.',
    ],
    examples: ['sallyport setup-link', 'sallyport setup-link --json'],
    input: noInput,
    async run({ terminal, request }) {
      const link = await request('Creating the link', (client) => client.people.setupLink())
      terminal.answer(link, () => link.url)
      terminal.next('open the link in a browser within an hour')
      return exit.done
    },
  })
}
