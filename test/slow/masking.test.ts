import { expect, it } from 'vitest'
import { growthOf, linearGrowth, texts } from '../masking/adversarial.ts'

it.each(Object.entries(texts))(
  'masking ten megabytes of %s costs time in proportion to the size',
  { timeout: 120_000 },
  async (_, text) => {
    expect(await growthOf(text, 10_000_000)).toBeLessThan(linearGrowth)
  },
)
