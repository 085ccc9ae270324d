import { expect, it } from 'vitest'
import { growthOf, linearGrowth, texts } from './adversarial.ts'

// Ten megabytes are in test/slow.
it.each(Object.entries(texts))('masking a text of %s costs time in proportion to its size', async (_, text) => {
  expect(await growthOf(text, 2_000_000)).toBeLessThan(linearGrowth)
})
