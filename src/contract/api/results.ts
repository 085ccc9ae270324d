import { z } from 'zod'
import { everyone } from '../access.ts'
import { endpoint } from './base.ts'

export const ResultPage = z.object({
  text: z.string(),
  form: z.enum(['text', 'json']).describe('What the tool wrote, or the JSON of what cannot be cut'),
  offset: z.number().describe('Characters before this page'),
  total: z.number().describe('Characters in all'),
  next: z.number().nullable().describe('Pass it as `offset` for the next page; null at the end'),
})
export type ResultPage = z.infer<typeof ResultPage>

export const results = {
  get: endpoint(everyone)
    .route({
      method: 'GET',
      path: '/results/{handle}',
      tags: ['results'],
      summary: 'A page of a result that was cut',
      description:
        'For whoever made the call, for a while after the last use. Reading is a call of its own in the record.',
      inputStructure: 'detailed',
    })
    .input(
      z.object({
        params: z.strictObject({ handle: z.string().describe('As the cut result names it') }),
        query: z
          .strictObject({
            offset: z.coerce.number().int().min(0).default(0).describe('Characters to skip from the beginning'),
            length: z.coerce.number().int().min(1).optional().describe('Most characters to give'),
          })
          .default({ offset: 0 }),
      }),
    )
    .output(ResultPage),
}
