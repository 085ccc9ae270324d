import { expect, it } from 'vitest'
import { compareCosts, texts } from '../masking/adversarial.ts'

const bytes = 10_000_000

/**
 * The cost is compared with that of an ordinary text: a square would be thousandfold. A text in which something is found
 * is read twice.
 */
it.each(Object.entries(texts))(
  'a text of %s costs no more than a few ordinary ones, in ten megabytes',
  { timeout: 120_000 },
  async (_, text) => {
    const { ordinary, given } = await compareCosts(text, bytes)
    expect(given).toBeLessThan(Math.max(ordinary * 100, 5000))
  },
)
