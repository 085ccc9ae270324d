import { z } from 'zod'
import { everyone } from '../access.ts'
import { Status } from '../status.ts'
import { endpoint } from './base.ts'

/** An agent sees that the gateway lives and what it may use, not how it is built. */
export const StatusAnswer = z.union([Status, Status.pick({ healthy: true, version: true })])
export type StatusAnswer = z.infer<typeof StatusAnswer>

export const status = endpoint(everyone)
  .route({ method: 'GET', path: '/status', tags: ['status'], summary: 'What is running, and whether it is healthy' })
  .output(StatusAnswer)
