import { expect, it } from 'vitest'
import { createStage, expectOrder, openCalls, runOnce } from './crashing.ts'

/** A few of the numbered points; `npm run test:slow` takes one after the other until none is left. */
const points = ['storage:2', '7', 'storage:15']

it('has one end for every call and a record that verifies, wherever it was killed', { timeout: 180_000 }, async () => {
  const stage = createStage()
  for (const point of points) {
    const where = await runOnce(stage, point)
    expect(where).not.toBe('ended')
    await expectOrder(stage, `${point}: ${where}`)
  }
  expect(await runOnce(stage, 'never')).toBe('ended')
  await expectOrder(stage, 'at the end')
  expect(openCalls(stage)).toEqual([])
})
