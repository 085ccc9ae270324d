import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  JsonError,
  maxDepth,
  maxExactDepth,
  parseExactJson,
  parseJson,
  type Scan,
  scanArray,
  scanObject,
} from '../../src/lib/json.ts'

const spaces = fc.constantFrom('', ' ', '\n', '\t \r\n')
/** The same value with blanks where JSON permits them, which `JSON.stringify` never writes by itself. */
const spacedJson = fc
  .tuple(fc.jsonValue({ noUnicodeString: false }), fc.constantFrom(0, 1, 4), spaces)
  .map(([value, indent, blank]) => `${blank}${JSON.stringify(value, null, indent)}${blank}`)
const longText = fc.string({ minLength: 40, maxLength: 400, unit: 'binary' })

describe('parseJson', () => {
  it('builds what JSON.parse builds', () => {
    fc.assert(
      fc.property(spacedJson, (text) => {
        expect(parseJson(text)).toEqual(JSON.parse(text))
        expect(parseJson(Buffer.from(text))).toEqual(JSON.parse(Buffer.from(text).toString()))
      }),
    )
  })

  it('refuses what JSON.parse refuses, wherever a byte was added, changed or taken away', () => {
    const mutation = fc.record({
      text: fc.oneof(
        spacedJson,
        longText.map((text) => JSON.stringify({ [text]: [text] })),
      ),
      at: fc.nat(),
      cut: fc.nat(2),
      insert: fc.oneof(
        fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', '\n', '\u0001', '0', '-', 'e', 'u', ' '),
        fc.string(),
      ),
    })
    fc.assert(
      fc.property(mutation, ({ text, at, cut, insert }) => {
        const from = text.length === 0 ? 0 : at % text.length
        const changed = text.slice(0, from) + insert + text.slice(from + cut)
        expect(accepts(parseJson, changed)).toBe(accepts(JSON.parse, changed))
      }),
      { numRuns: 2000 },
    )
  })

  it('judges a byte the same wherever in a long text and wherever in memory it stands', () => {
    const bytes = fc.record({ byte: fc.nat(255), at: fc.nat(299), shift: fc.nat(7) })
    fc.assert(
      fc.property(bytes, ({ byte, at, shift }) => {
        const memory = Buffer.alloc(312, 'a')
        const text = memory.subarray(shift, shift + 302)
        text[0] = 0x22
        text[301] = 0x22
        text[1 + at] = byte
        expect(accepts<Buffer>(parseJson, text)).toBe(accepts<string>(JSON.parse, text.toString('latin1')))
      }),
      { numRuns: 3000 },
    )
  })

  it('takes __proto__ for an ordinary key', () => {
    const parsed = parseJson('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}')
    expect(Object.keys(parsed ?? {})).toEqual(['__proto__', 'constructor'])
    expect('polluted' in {}).toBe(false)
  })

  it.each([
    '',
    ' ',
    '\ufeff{}',
    'nul',
    'NaN',
    '01',
    '1.',
    '+1',
    "{'a':1}",
    '{"a":1,}',
    '[1,]',
    '{} {}',
    '"a',
    '"\\x41"',
  ])('refuses %j', (text) => {
    expect(() => parseJson(text)).toThrow(JsonError)
  })

  it('refuses what is nested deeper than others could cope with, and nothing less deep', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect(() => parseJson(nested(maxDepth))).not.toThrow()
    expect(faultOf(() => parseJson(nested(maxDepth + 2)))).toBe('too-deep')
    expect(faultOf(() => parseJson(nested(1_000_000)))).toBe('too-deep')
    expect(faultOf(() => parseJson('{"a":'.repeat(1_000_000)))).toBe('too-deep')
    // What is read back has more around it than what was taken.
    expect(() => parseExactJson(nested(maxExactDepth))).not.toThrow()
    expect(faultOf(() => parseExactJson(nested(maxExactDepth + 2)))).toBe('too-deep')
    expect(maxExactDepth).toBeLessThanOrEqual(maxDepth - 10)
  })
})

describe('scanObject', () => {
  it('looks inside one member exactly as if that had been scanned alone', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (result, other) => {
        const bytes = Buffer.from(JSON.stringify({ other, result, last: 1 }))
        const depth: Scan = { deepest: 0 }
        const inside = scanObject(bytes, depth, 'result').find(({ key }) => key === 'result')
        const alone = scanObject(Buffer.from(JSON.stringify(result)))
        const start = inside?.start ?? 0
        expect(
          inside?.members?.map((member) => ({
            key: member.key,
            keyStart: member.keyStart - start,
            start: member.start - start,
            end: member.end - start,
          })),
        ).toEqual(alone)
        const plain: Scan = { deepest: 0 }
        scanObject(bytes, plain)
        expect(depth).toEqual(plain)
      }),
    )
  })

  it('finds each member where it stands, in the order in which they stand', () => {
    const object = fc.dictionary(fc.oneof(fc.string(), longText), fc.jsonValue())
    fc.assert(
      fc.property(object, fc.constantFrom(0, 2), (value, indent) => {
        const bytes = Buffer.from(JSON.stringify(value, null, indent))
        const members = scanObject(bytes)
        const whole: unknown = JSON.parse(bytes.toString())
        const found = members.map(({ key, start, end }) => [key, JSON.parse(bytes.toString('utf8', start, end))])
        expect(Object.fromEntries(found)).toEqual(whole)
        for (const { keyStart } of members) expect(bytes[keyStart]).toBe(0x22)
      }),
    )
  })

  it('accepts a text exactly when it is the JSON of an object', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          spacedJson,
          fc.string(),
          fc.string().map((text) => `{"a":${text}}`),
        ),
        (text) => {
          const isObjectText = accepts((candidate) => {
            const value: unknown = JSON.parse(candidate)
            if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('no object')
          }, text)
          expect(accepts((candidate) => scanObject(Buffer.from(candidate)), text)).toBe(isObjectText)
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('keeps doubled keys apart, for the reader to judge', () => {
    const bytes = Buffer.from('{"id":1,"i\\u0064":2}')
    expect(scanObject(bytes).map(({ key }) => key)).toEqual(['id', 'id'])
  })

  it('tells how deep the value is, without a stack of its own', () => {
    const depth: Scan = { deepest: 0 }
    scanObject(Buffer.from(`{"a":${'['.repeat(5000)}${']'.repeat(5000)},"b":[[]]}`), depth)
    expect(depth.deepest).toBeGreaterThanOrEqual(4999)
  })

  it('reads long strings with all the quotes and backslashes that fit into them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('\\', '"', 'x'.repeat(50), '\u2028', 'é', '\n'), { maxLength: 200 }),
        (parts) => {
          const value = { before: 1, text: parts.join(''), after: 2 }
          const bytes = Buffer.from(JSON.stringify(value))
          const member = scanObject(bytes)[1]
          expect(JSON.parse(bytes.toString('utf8', member?.start, member?.end))).toBe(value.text)
          expect(scanObject(bytes)).toHaveLength(3)
        },
      ),
    )
  })
})

describe('scanArray', () => {
  it('gives each element as its own bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(0, 3), (value, indent) => {
        const elements = scanArray(Buffer.from(JSON.stringify(value, null, indent)))
        expect(elements.map((element) => JSON.parse(element.toString()))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it.each(['', '{}', '[', '[1', '[1,]', '[,1]', '[1 2]', '[1]]', '[1]x', '["a]'])('refuses %j', (text) => {
    expect(() => scanArray(Buffer.from(text))).toThrow(JsonError)
  })
})

function accepts<Text>(read: (text: Text) => unknown, text: Text): boolean {
  try {
    read(text)
    return true
  } catch {
    return false
  }
}

function faultOf(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    return error instanceof JsonError ? error.fault : 'another error'
  }
}

describe('parseExactJson', () => {
  /** The decimal value of a JSON number as a whole number of 10^-1200, found without floating point. */
  const scaled = (word: string): bigint => {
    const [, sign = '', whole = '', fraction = '', exponent = '0'] =
      /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(word) ?? []
    const size = BigInt(whole + fraction) * 10n ** BigInt(1200 + Number(exponent) - fraction.length)
    return sign === '-' ? -size : size
  }
  const digits = (most: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${most}}$`))
  const word = fc
    .record({
      sign: fc.constantFrom('', '-'),
      whole: fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,24}$/)),
      fraction: fc.oneof(
        fc.constant(''),
        digits(25).map((text) => `.${text}`),
      ),
      exponent: fc.oneof(
        fc.constant(''),
        fc.integer({ min: -400, max: 400 }).map((power) => `e${power}`),
      ),
    })
    .map(({ sign, whole, fraction, exponent }) => sign + whole + fraction + exponent)

  it('takes a number exactly if it is written again as the same number', () => {
    const numbers = fc.oneof(
      word,
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => JSON.stringify(each)),
      fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
    )
    fc.assert(
      fc.property(numbers, (text) => {
        const again = JSON.stringify(JSON.parse(text))
        const survives = again !== 'null' && scaled(again) === scaled(text)
        expect(accepts(parseExactJson, `{"a":[${text}]}`), text).toBe(survives)
      }),
      { numRuns: 3000 },
    )
  })

  it('takes everything else that JSON.parse takes, and gives the same', () => {
    const value = fc.jsonValue({ noUnicodeString: false }).filter((each) => !JSON.stringify(each).includes('__proto__'))
    fc.assert(
      fc.property(value, (each) => {
        const text = JSON.stringify(each)
        expect(parseExactJson(Buffer.from(text))).toEqual(JSON.parse(text))
      }),
    )
  })

  it('refuses a key that comes twice, wherever it stands', () => {
    const object = fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue(), { minKeys: 1, maxKeys: 4 })
    fc.assert(
      fc.property(object, fc.nat(3), (each, deep) => {
        const [key = ''] = Object.keys(each)
        const doubled = `${JSON.stringify(each).slice(0, -1)},${JSON.stringify(key)}:null}`
        const text = `${'[{"in":'.repeat(deep)}${doubled}${'}]'.repeat(deep)}`
        expect(accepts(parseJson, text)).toBe(true)
        expect(accepts(parseExactJson, text), text).toBe(false)
      }),
    )
  })
})
