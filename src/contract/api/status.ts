import { z } from 'zod'
import { everyone } from '../access.ts'
import { Status } from '../status.ts'
import { endpoint } from './base.ts'

/** Agents get only `healthy` and `version`, because the rest shows servers and the configuration of others. */
export const StatusAnswer = z.union([Status, Status.pick({ healthy: true, version: true })])
export type StatusAnswer = z.infer<typeof StatusAnswer>

export const status = endpoint(everyone)
  .route({ method: 'GET', path: '/status', tags: ['status'], summary: 'Get the status of the gateway' })
  .output(StatusAnswer)
