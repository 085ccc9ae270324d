import { expect, it } from 'vitest'
import { createMasking, type Masking } from '../../src/masking/masking.ts'

/** Ten megabytes that look like what is hidden at every place, or like a token that never comes. */
const bytes = 10_000_000
const texts = {
  'nearly the value, again and again': 'a'.repeat(bytes),
  'beginnings of tokens': 'sk-'.repeat(bytes / 3),
  'beginnings of tokens of every kind': 'sk-ant-sp_xoxo-ghp_xoxb-github_pat-'.repeat(bytes / 35),
  'names that begin like tokens, with capitals': 'sk-aAbBCcdD-'.repeat(bytes / 12),
  'beginnings of tokens of this gateway': 'sp_'.repeat(bytes / 3),
  'the beginning that fifty values share': 'github_pat_'.repeat(bytes / 11),
  'beginnings of a JWT': 'eyJ-'.repeat(bytes / 4),
  'ends of private keys': ' PRIVATE KEY-----'.repeat(bytes / 17),
  'beginnings of private keys': '-----BEGIN PRIVATE KEY-----\\\\x'.repeat(bytes / 30),
  'one private key of backslashes': `-----BEGIN PRIVATE KEY-----${'\\'.repeat(bytes / 4)}`,
  'quotes and backslashes': '\\"'.repeat(bytes / 4),
}

function createFull(): Masking {
  const masking = createMasking()
  masking.hide(`${'a'.repeat(63)}b`)
  for (let n = 0; n < 50; n++) masking.hide(`github_pat_${'x'.repeat(n)}0123456789`)
  return masking
}

/**
 * The cost is compared with that of an ordinary text: a square would be thousandfold. A text in which something is found
 * is read twice.
 */
it.each(Object.entries(texts))(
  'a text of %s costs no more than a few ordinary ones',
  { timeout: 120_000 },
  async (_, text) => {
    const masking = createFull()
    const ordinary = await costOf(masking, 'The quick brown fox jumps over the lazy dog. '.repeat(bytes / 45))
    expect(await costOf(masking, text)).toBeLessThan(Math.max(ordinary * 100, 5000))
  },
)

async function costOf(masking: Masking, text: string): Promise<number> {
  const message = Buffer.from(JSON.stringify({ text }))
  const before = process.cpuUsage()
  await masking.jsonSlowly(message)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
