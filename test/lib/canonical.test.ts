import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { toCanonicalText } from '../../src/lib/canonical.ts'

it('writes every JSON value as RFC 8785 does', () => {
  const keys = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('10', '9', '', '__proto__', 'é', 'z'))
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, tie('leaf'), fc.array(tie('value')), fc.dictionary(keys, tie('value'))),
    leaf: fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    ),
  }))
  fc.assert(
    fc.property(value, (each) => {
      expect(toCanonicalText(each)).toBe(canonicalize(each))
    }),
  )
})

it('leaves out members without a value, and writes dates as text', () => {
  const date = new Date('2026-06-01T12:00:00Z')
  expect(toCanonicalText({ b: undefined, a: [undefined, date] })).toBe('{"a":[null,"2026-06-01T12:00:00.000Z"]}')
  expect(toCanonicalText(undefined)).toBe('null')
})

it('tells half a surrogate pair from every other text', () => {
  expect(toCanonicalText({ text: '\ud800' })).not.toBe(toCanonicalText({ text: '\ufffd' }))
})
