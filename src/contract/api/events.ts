import { z } from 'zod'
import { everyone } from '../access.ts'
import { eventNames } from '../events.ts'
import { endpoint } from './base.ts'

export const events = {
  listen: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/events',
      tags: ['events'],
      summary: 'Stream of events, as server-sent events',
      description:
        'Each event has a name, an id and data such as `{ "approval": … }` or `{ "call": … }`. Calls are sent without their arguments. With `Last-Event-ID` the stream begins with the missed events. If they are no longer available, the event `reset` is sent instead, and the client must read its data again.',
    })
    .input(
      z.strictObject({
        names: z
          .string()
          .optional()
          .describe(`Names of the events to send, separated by commas. Default: all events: ${eventNames.join(', ')}`),
      }),
    )
    .output(z.string()),
}
