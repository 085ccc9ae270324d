import type { Command } from 'commander'
import { z } from 'zod'
import { type Delivery, DeliveryState, type WebhookEndpoint } from '../../contract/webhook.ts'
import { toDuration, toRelative } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { shorteningIds } from '../client/short-id.ts'
import { exit } from '../terminal/exit.ts'
import { wholeNumber } from '../terminal/number.ts'
import { renderTable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addCommand, addExamples, addGlobalOptions, noInput, type Run } from './command.ts'
import { toDeliveryId } from './ids.ts'

export function addWebhooks(program: Command, run: Run): void {
  const webhooks = program.command('webhooks').description('list webhooks and their deliveries, retry and test')
  addGlobalOptions(webhooks)
  addExamples(webhooks, ['sallyport webhooks list', 'sallyport webhooks test chat'])

  addCommand(webhooks, run, {
    use: 'list',
    summary: 'list endpoints with the state of their deliveries',
    examples: ['sallyport webhooks list', 'sallyport webhooks list --json'],
    input: noInput,
    async run({ terminal, request }) {
      const page = await request('Listing webhooks', (client) => client.webhooks.list())
      terminal.answer(page, () => (page.items.length > 0 ? renderEndpoints(terminal, page.items) : 'No webhooks.'))
      for (const { name, error } of page.items)
        if (error !== undefined) terminal.talk(terminal.talkColours.red(toVisible(`${name}: ${error}`)))
      if (page.items.some(({ failed }) => failed > 0)) terminal.next('sallyport webhooks deliveries --state failed')
      return exit.done
    },
  })

  addCommand(webhooks, run, {
    use: 'deliveries',
    summary: 'list deliveries, newest first',
    options: [
      ['--state <state>', 'only deliveries in this state: waiting, delivered or failed'],
      ['--endpoint <name>', 'only deliveries to this endpoint'],
      ['--limit <n>', 'deliveries per page (default 50)'],
      ['--cursor <cursor>', '`next` of the previous page'],
    ],
    examples: ['sallyport webhooks deliveries --state failed', 'sallyport webhooks deliveries --endpoint chat --json'],
    input: z.object({
      state: DeliveryState.optional(),
      endpoint: z.string().optional(),
      limit: wholeNumber({ min: 1, max: 1000 }).optional(),
      cursor: z.string().optional(),
    }),
    async run({ terminal, request }, query) {
      const page = await request('Listing deliveries', (client) => client.webhooks.deliveries(query))
      terminal.answer(page, () => (page.items.length > 0 ? renderDeliveries(terminal, page.items) : 'No deliveries.'))
      const failed = page.items.find(({ state }) => state === 'failed')
      if (failed) terminal.next(`sallyport webhooks retry ${failed.id}`)
      if (page.next !== null) terminal.next(`sallyport webhooks deliveries --cursor ${page.next}`)
      return exit.done
    },
  })

  addCommand(webhooks, run, {
    use: 'retry <id>',
    summary: 'send a failed or waiting delivery now',
    examples: ['sallyport webhooks retry msg_01k9', 'sallyport webhooks retry msg_01k9 --json'],
    input: z.object({ id: z.string() }),
    async run({ terminal, request }, { id }) {
      const delivery = await request('Sending again', async (client) =>
        client.webhooks.retry({ params: { id: await toDeliveryId(client, id) } }),
      )
      terminal.answer(delivery, () => toVisible(`${delivery.id} to ${delivery.endpoint}: ${delivery.state}`))
      return exit.done
    },
  })

  addCommand(webhooks, run, {
    use: 'test <name>',
    summary: 'send a `test` event to an endpoint and print the result',
    examples: ['sallyport webhooks test chat', 'sallyport webhooks test chat --json'],
    input: z.object({ name: z.string() }),
    async run({ terminal, request }, { name }) {
      const trial = await request('Sending', (client) => client.webhooks.test({ params: { name } }))
      const { green, red } = terminal.colours
      const took = `after ${toDuration(trial.durationMs)}`
      terminal.answer(trial, () =>
        trial.delivered
          ? green(toVisible(`${name} answered ${trial.status} ${took}.`))
          : red(toVisible(`${name} did not accept the event: ${trial.error?.message ?? 'no answer'} (${took})`)),
      )
      return trial.delivered ? exit.done : exit.failed
    },
  })
}

function renderEndpoints(terminal: Terminal, endpoints: readonly WebhookEndpoint[]): string {
  const now = Date.now()
  return renderTable(
    endpoints,
    [
      { title: 'name', value: ({ name }) => name },
      { title: 'to', value: ({ target }) => target, shrinks: true },
      { title: 'state', value: ({ state }) => state },
      { title: 'last success', value: ({ lastSuccessAt }) => toRelative(lastSuccessAt, now) || 'never', drops: 3 },
      { title: 'waiting', value: ({ waiting }) => String(waiting) },
      { title: 'failed', value: ({ failed }) => String(failed) },
      { title: 'last failure', value: ({ lastFailure }) => lastFailure?.error ?? '', shrinks: true, drops: 2 },
      { title: 'events', value: ({ events }) => events.join(', '), shrinks: true, drops: 1 },
    ],
    terminal.width,
  )
}

function renderDeliveries(terminal: Terminal, deliveries: readonly Delivery[]): string {
  const now = Date.now()
  const toShort = shorteningIds(
    deliveries.map(({ id }) => id),
    terminal.width,
  )
  return renderTable(
    deliveries,
    [
      { title: 'id', value: ({ id }) => toShort(id) },
      { title: 'to', value: ({ endpoint }) => endpoint },
      { title: 'event', value: ({ type }) => type },
      { title: 'state', value: ({ state }) => state },
      { title: 'attempts', value: ({ attempts }) => String(attempts) },
      { title: 'made', value: ({ createdAt }) => toRelative(createdAt, now), drops: 1 },
      { title: 'next', value: ({ nextAt }) => toRelative(nextAt, now), drops: 2 },
      { title: 'error', value: ({ error }) => error ?? '', shrinks: true },
    ],
    terminal.width,
  )
}
