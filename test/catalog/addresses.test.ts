import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromPublicUri, isPlainAddress, matchesTemplate, toPublicUri } from '../../src/catalog/addresses.ts'

describe('an address that several servers have', () => {
  it('is made unique in a way that can be undone, whatever it is', () => {
    const server = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/)
    const uri = fc.string({ minLength: 1, unit: 'grapheme-ascii' })
    fc.assert(
      fc.property(server, uri, (name, address) => {
        expect(fromPublicUri(toPublicUri(name, address))).toEqual({ server: name, uri: address })
      }),
    )
  })

  it.each(['test://plain', 'sallyport://', 'sallyport://server', 'sallyport://server/%zz'])(
    '%s is nobody’s unique form',
    (uri) => {
      expect(fromPublicUri(uri)).toBeUndefined()
    },
  )
})

describe('a template', () => {
  it.each([
    ['test://template/{id}/data', 'test://template/123/data', true],
    ['test://template/{id}/data', 'test://template/1/2/data', false],
    ['test://template/{id}/data', 'test://template/123/other', false],
    ['file:///{+path}', 'file:///a/b/c.txt', true],
    ['file:///{name}', 'file:///a/b', false],
    ['db://{table}/{row}', 'db://users/7', true],
    ['db://{table}/{row}', 'db://users', false],
    ['plain://x', 'plain://x', true],
    ['plain://x', 'plain://xy', false],
  ])('%s and the address %s: %s', (template, uri, fits) => {
    expect(matchesTemplate(template, uri)).toBe(fits)
  })
})

describe('an address for a template', () => {
  it.each([
    'test://template/1/data',
    'file:///srv/docs/a b.txt',
    'file:///srv/docs/',
    'db://users?x=..',
    'x:%C3%A4',
    'f:///a%20b',
  ])('is taken as %s', (uri) => {
    expect(isPlainAddress(uri)).toBe(true)
  })

  it.each([
    'file:///srv/./private/x',
    'file:///srv/docs/../private/x',
    'file:///srv//private/x',
    'file:///srv/%70rivate/x',
    'file:///srv/%2e%2e/x',
    'file:///srv\\private',
    'file:///srv/..',
  ])('is not taken as %s, which a rule would not know again', (uri) => {
    expect(isPlainAddress(uri)).toBe(false)
  })
})
