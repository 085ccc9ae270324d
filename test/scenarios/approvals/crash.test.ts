import { expect, it } from 'vitest'
import { createCrashStage, killAndRepeat } from './crashing.ts'

/** One of the numbered points; `npm run test:slow` takes one after the other until none is left. */
const point = '6'

it('runs no approval twice, and loses and doubles no grant, when it is killed', { timeout: 180_000 }, async () => {
  expect(await killAndRepeat(createCrashStage(), 1, point)).not.toBe('ended')
})
