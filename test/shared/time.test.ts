import { describe, expect, it } from 'vitest'
import { toDuration, toMoment, toRelative, toSpan } from '../../src/shared/time.ts'

describe('times for people', () => {
  const now = Date.parse('2026-06-01T12:00:00Z')

  it.each([
    ['2026-06-01T11:59:58Z', 'just now'],
    ['2026-06-01T11:59:20Z', '40 s ago'],
    ['2026-06-01T11:57:00Z', '3 min ago'],
    ['2026-06-01T02:00:00Z', '10 h ago'],
    ['2026-05-20T12:00:00Z', '12 d ago'],
    ['2026-06-01T14:00:00Z', 'in 2 h'],
    ['not a time', 'not a time'],
  ])('says %s as "%s"', (iso, said) => {
    expect(toRelative(iso, now)).toBe(said)
  })

  it.each([
    [12, '12 ms'],
    [1234, '1.2 s'],
    [180_000, '3 min'],
  ])('says %d milliseconds as "%s"', (milliseconds, said) => {
    expect(toDuration(milliseconds)).toBe(said)
  })

  it.each([
    [59_700, '1 min'],
    [30 * 3_600_000, '30 h'],
    [3 * 86_400_000, '3 d'],
  ])('says a span of %d milliseconds as "%s"', (milliseconds, said) => {
    expect(toSpan(milliseconds)).toBe(said)
  })

  it('understands when a token should expire', () => {
    expect(toMoment('30d', now)).toBe('2026-07-01T12:00:00.000Z')
    expect(toMoment('12h', now)).toBe('2026-06-02T00:00:00.000Z')
    expect(toMoment('2027-01-31', now)).toBe('2027-01-31T00:00:00.000Z')
    expect(toMoment('soon', now)).toBeUndefined()
  })
})
