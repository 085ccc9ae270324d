import { z } from 'zod'
import { everyone } from '../access.ts'
import { endpoint } from './base.ts'

export const ResultPage = z.object({
  text: z.string(),
  form: z
    .enum(['text', 'json'])
    .describe(
      'text: the text of the result. json: JSON of parts that cannot be cut, such as images or structured content',
    ),
  offset: z.number().describe('Number of characters before this page'),
  total: z.number().describe('Number of characters in total'),
  next: z.number().nullable().describe('Value of `offset` for the next page; null on the last page'),
})
export type ResultPage = z.infer<typeof ResultPage>

export const results = {
  get: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/results/{handle}',
      tags: ['results'],
      summary: 'Read a page of a result that was cut',
      description:
        'Only the principal that made the call can read the result, until `limits.kept` milliseconds after the last read. Each read is recorded as a separate call.',
      inputStructure: 'detailed',
    })
    .input(
      z.object({
        params: z.strictObject({ handle: z.string().describe('Handle in the cut result') }),
        query: z
          .strictObject({
            offset: z.coerce.number().int().min(0).default(0).describe('Characters to skip from the beginning'),
            length: z.coerce.number().int().min(1).optional().describe('Maximum number of characters to return'),
          })
          .default({ offset: 0 }),
      }),
    )
    .output(ResultPage),
}
