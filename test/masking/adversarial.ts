import { createMasking, type Masking } from '../../src/masking/masking.ts'

/** Texts that look like a hidden value at every place, or like a token that never comes, by how many bytes they have. */
export const texts: Readonly<Record<string, (bytes: number) => string>> = {
  'nearly the value, again and again': (bytes) => 'a'.repeat(bytes),
  'beginnings of tokens': (bytes) => 'sk-'.repeat(bytes / 3),
  'beginnings of tokens of every kind': (bytes) => 'sk-ant-sp_xoxo-ghp_xoxb-github_pat-'.repeat(bytes / 35),
  'names that begin like tokens, with capitals': (bytes) => 'sk-aAbBCcdD-'.repeat(bytes / 12),
  'beginnings of tokens of this gateway': (bytes) => 'sp_'.repeat(bytes / 3),
  'the beginning that fifty values share': (bytes) => 'github_pat_'.repeat(bytes / 11),
  'beginnings of a JWT': (bytes) => 'eyJ-'.repeat(bytes / 4),
  'ends of private keys': (bytes) => ' PRIVATE KEY-----'.repeat(bytes / 17),
  'beginnings of private keys': (bytes) => '-----BEGIN PRIVATE KEY-----\\\\x'.repeat(bytes / 30),
  'one private key of backslashes': (bytes) => `-----BEGIN PRIVATE KEY-----${'\\'.repeat(bytes / 4)}`,
  'quotes and backslashes': (bytes) => '\\"'.repeat(bytes / 4),
}

function createFull(): Masking {
  const masking = createMasking()
  masking.hide(`${'a'.repeat(63)}b`)
  for (let n = 0; n < 50; n++) masking.hide(`github_pat_${'x'.repeat(n)}0123456789`)
  return masking
}

/**
 * How much more processor time a text takes than a text of a quarter of its size: about 4 if the cost grows with the size,
 * 16 if it grows with the square. The least of a few attempts counts, because collecting garbage is part of some.
 */
export async function growthOf(text: (bytes: number) => string, bytes: number): Promise<number> {
  const masking = createFull()
  let least = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 5 && least > linearGrowth; attempt++) {
    const quarter = await costOf(masking, text(bytes / 4))
    least = Math.min(least, (await costOf(masking, text(bytes))) / quarter)
  }
  return least
}

/** Between the growth of a linear and of a quadratic cost. */
export const linearGrowth = 8

async function costOf(masking: Masking, text: string): Promise<number> {
  const message = Buffer.from(JSON.stringify({ text }))
  const before = process.threadCpuUsage()
  await masking.jsonSlowly(message)
  const { user, system } = process.threadCpuUsage(before)
  return user + system
}
