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
      summary: 'What happens, as it happens: a stream of server-sent events that ends when the caller leaves',
      description:
        'Each event has its name, an id, and as data an object such as `{ "approval": … }` or `{ "call": … }`; calls come without their arguments. With `Last-Event-ID` it begins with what was missed; where that is too much or not known any more comes `reset`, and whoever listens reads everything again.',
    })
    .input(
      z.strictObject({
        names: z
          .string()
          .optional()
          .describe(`Only these, separated by commas; without it all: ${eventNames.join(', ')}`),
      }),
    )
    .output(z.string()),
}
