import { expect, it } from 'vitest'
import { compareCosts, texts } from './adversarial.ts'

const bytes = 2_000_000

/**
 * The cost is compared with that of an ordinary text: a square would be thousandfold. A text in which something is found
 * is read twice. Ten megabytes are in test/slow.
 */
it.each(Object.entries(texts))(
  'a text of %s costs no more than a few ordinary ones',
  { timeout: 120_000 },
  async (_, text) => {
    const { ordinary, given } = await compareCosts(text, bytes)
    expect(given).toBeLessThan(Math.max(ordinary * 100, 1000))
  },
)
