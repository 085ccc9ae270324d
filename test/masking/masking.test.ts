import { createHash, generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMasking } from '../../src/masking/masking.ts'

const mark = '[secret]'

/** Every way of writing a value that the docs list. */
const encodings: Readonly<Record<string, (value: string) => string>> = {
  raw: (value) => value,
  'base64, aligned': (value) => base64(value, 0),
  'base64 behind one byte': (value) => base64(value, 1),
  'base64 behind two bytes': (value) => base64(value, 2),
  'base64 for addresses': (value) => base64(value, 1).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''),
  hexadecimal: (value) => Buffer.from(value).toString('hex'),
  'hexadecimal in capitals': (value) => Buffer.from(value).toString('hex').toUpperCase(),
  'escaped for addresses': encodeURIComponent,
  'escaped for addresses, small': (value) =>
    encodeURIComponent(value).replace(/%../g, (escaped) => escaped.toLowerCase()),
  'escaped for forms': (value) => new URLSearchParams({ v: value }).toString().slice(2),
  'escaped for JSON': (value) => JSON.stringify(value).slice(1, -1),
  'escaped for JSON with slashes': (value) => JSON.stringify(value).slice(1, -1).replaceAll('/', '\\/'),
  'escaped for JSON whole': (value) =>
    Array.from({ length: value.length }, (_, at) => `\\u${value.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
}

function base64(value: string, before: number): string {
  return Buffer.concat([Buffer.alloc(before, 'x'), Buffer.from(value), Buffer.from('yz')]).toString('base64')
}

/** How each encoding is undone, to see whether the value is still in there. */
function holds(text: string, value: string, name: string): boolean {
  if (text.includes(value)) return true
  const encoded = encodings[name]?.(value) ?? value
  if (!name.startsWith('base64')) return text.includes(encoded)
  // The characters at the edges depend on what stands beside; the rest is the value.
  return text.includes(encoded.slice(4, encoded.length - 5))
}

const secretValue = fc
  .oneof(
    fc.string({ minLength: 8, maxLength: 60, unit: fc.constantFrom(...'abcXYZ019_-+/="\\ <>&%~.é☃\n\t') }),
    fc.base64String({ minLength: 8, maxLength: 80 }),
    fc.string({ minLength: 8, maxLength: 40, unit: 'grapheme' }),
  )
  .filter((value) => value.length >= 8 && value.isWellFormed() && !mark.includes(value))
const around = fc.string({ maxLength: 40, unit: fc.constantFrom(...'abc "\\\n{}[]:,é') })
const encoding = fc.constantFrom(...Object.keys(encodings))

describe('a hidden value', () => {
  it('never passes, in whatever listed form and at whatever place it stands in a text', () => {
    fc.assert(
      fc.property(secretValue, encoding, around, around, (value, name, before, after) => {
        const masking = createMasking()
        masking.hide(value)
        const masked = masking.text(`${before}${encodings[name]?.(value)}${after}`)
        expect(holds(masked, value, name)).toBe(false)
      }),
      { numRuns: 200 },
    )
  })

  it('never passes in a message, which stays JSON and keeps everything else', () => {
    fc.assert(
      fc.property(secretValue, encoding, around, fc.json({ maxDepth: 3 }), (value, name, before, other) => {
        const masking = createMasking()
        masking.hide(value)
        const message = {
          content: [{ type: 'text', text: `${before}${encodings[name]?.(value)}!` }],
          other: JSON.parse(other),
        }
        const masked = masking.json(Buffer.from(JSON.stringify(message)))
        const parsed = JSON.parse(masked?.bytes.toString('utf8') ?? '')
        expect(holds(parsed.content[0].text, value, name)).toBe(false)
        expect(masked?.found).toBeGreaterThan(0)
        if (!JSON.stringify(message.other).includes(value.slice(0, 4))) expect(parsed.other).toEqual(message.other)
      }),
      { numRuns: 200 },
    )
  })

  it('never passes by being written in characters that JSON may write in another way', () => {
    fc.assert(
      fc.property(secretValue, fc.infiniteStream(fc.constantFrom('plain', 'small', 'large')), (value, ways) => {
        const masking = createMasking()
        masking.hide(value)
        const written = Array.from({ length: value.length }, (_, at) => {
          const way = ways.next().value
          if (way === 'plain') return JSON.stringify(value.charAt(at)).slice(1, -1)
          const hex = value.charCodeAt(at).toString(16).padStart(4, '0')
          return `\\u${way === 'small' ? hex : hex.toUpperCase()}`
        }).join('')
        const masked = masking.json(Buffer.from(`{"text":"${written}"}`))
        expect(JSON.parse(masked?.bytes.toString('utf8') ?? '')).toEqual({ text: mark })
      }),
      { numRuns: 150 },
    )
  })

  it('never passes in pieces, wherever a stream of lines is cut', () => {
    const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 12 })
    fc.assert(
      fc.property(secretValue, encoding, around, cuts, (value, name, before, places) => {
        const masking = createMasking()
        masking.hide(value)
        const bytes = Buffer.from(`first\n${before}${encodings[name]?.(value)}\nlast\n`.repeat(2))
        const stream = masking.stream()
        const given = [0, ...places.sort((a, b) => a - b), bytes.length].map((from, index, all) =>
          stream.push(bytes.subarray(from, all[index + 1] ?? bytes.length)),
        )
        const seen = Buffer.concat([...given, stream.rest()]).toString('utf8')
        expect(holds(seen, value, name)).toBe(false)
        expect(seen).toMatch(/^first\n/)
      }),
      { numRuns: 150 },
    )
  })

  it('is hidden in names and in every part of a value, and what holds none stays the same object', () => {
    const masking = createMasking()
    masking.hide('hunter2hunter2')
    expect(masking.value({ a: ['x hunter2hunter2'], hunter2hunter2: 1 })).toEqual({ a: [`x ${mark}`], [mark]: 1 })
    const clean = { a: ['b', { c: 1 }] }
    expect(masking.value(clean)).toBe(clean)
  })

  it('is hidden in texts only: a number that looks like it is none', () => {
    const masking = createMasking()
    masking.hide('12345678')
    const masked = masking.json(Buffer.from('{"n":12345678,"t":"12345678"}'))
    expect(masked?.bytes.toString()).toBe(`{"n":12345678,"t":"${mark}"}`)
  })

  it('shorter than eight characters is not hidden, because it would turn up by chance', () => {
    const masking = createMasking()
    masking.hide('short12')
    expect(masking.text('a short12 text')).toBe('a short12 text')
  })

  it('that begins or ends like another is hidden whole', () => {
    const masking = createMasking()
    for (const value of ['github_pat_1', 'github_pat_12345', '5github_pat_12']) masking.hide(value)
    expect(masking.text('x github_pat_12345 y 5github_pat_12 z')).toBe(`x ${mark} y ${mark} z`)
  })

  it('is found in a long message as well, while others get their turn', async () => {
    const masking = createMasking()
    masking.hide('hunter2hunter2')
    const text = `${'x'.repeat(700_000)} hunter2hunter2 ${'y\n'.repeat(100_000)}`
    const bytes = Buffer.from(JSON.stringify({ text }))
    expect(masking.json(bytes)).toBeUndefined()
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    const masked = await masking.jsonSlowly(bytes)
    clearInterval(timer)
    expect(masked.found).toBe(1)
    expect(JSON.parse(masked.bytes.toString()).text).toBe(text.replace('hunter2hunter2', mark))
    expect(turns).toBeGreaterThan(0)
  })
})

describe('a wrong filter', () => {
  it('that knows values only as they are lets an encoded one through', () => {
    const rawOnly = (text: string, value: string) => text.replaceAll(value, mark)
    expect(() =>
      fc.assert(
        fc.property(secretValue, encoding, (value, name) => {
          expect(holds(rawOnly(encodings[name]?.(value) ?? '', value), value, name)).toBe(false)
        }),
      ),
    ).toThrow()
  })

  it('that cuts before it hides lets most of a value through', () => {
    const value = 'hunter2hunter2hunter2'
    const masking = createMasking()
    masking.hide(value)
    const text = `result: ${value}`
    expect(masking.text(text.slice(0, 24))).toContain('hunter2hunter2')
    expect(masking.text(text).slice(0, 24)).not.toContain('hunter2')
  })
})

describe('a variable that was handed to a server', () => {
  it.each([
    ['API_TOKEN', 'tok-0123456789', true],
    ['DATABASE_URL', 'postgres://me:pass@db/x', true],
    ['SERVICE', 'https://example.com/?key=0123456789', true],
    ['HOME', '/home/somebody', false],
    ['DOCS', '/srv/documents', false],
    ['AWS_REGION', 'eu-central-1', false],
    ['SERVICE', 'https://example.com/mcp', false],
  ])('%s = %s is hidden: %s', (name, value, hidden) => {
    const masking = createMasking()
    masking.hideVariable(name, value)
    expect(masking.text(`it is ${value}.`) !== `it is ${value}.`).toBe(hidden)
  })
})

describe('a token of a known form', () => {
  const alnum = 'a1B2c3D4e5F6g7H8i9J0'
  const known = {
    'of GitHub': `ghp_${alnum.slice(0, 16)}${alnum}`,
    'of GitHub, fine-grained': `github_pat_${alnum}${alnum}_${alnum}`,
    'of Slack': ['xoxb', '123456789012', alnum].join('-'),
    'of AWS': 'AKIAIOSFODNN7EXAMPLE',
    'of OpenAI': `sk-proj-${alnum}${alnum}`,
    'of Anthropic': `sk-ant-api03-${alnum}${alnum}`,
    'of this gateway': `sp_0123456789_${alnum}${alnum}abc`,
    'a JWT': 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U',
    'a private key': '-----BEGIN RSA PRIVATE KEY-----\nMIIEow==\n-----END RSA PRIVATE KEY-----',
  }

  it.each(Object.entries(known))('%s is hidden, whoever it belongs to', (_, token) => {
    const masking = createMasking()
    expect(masking.text(`token=${token}`)).toBe(`token=${mark}`)
    const masked = masking.json(Buffer.from(JSON.stringify({ text: `first\n${token}\nlast` })))
    expect(JSON.parse(masked?.bytes.toString() ?? '')).toEqual({ text: `first\n${mark}\nlast` })
  })

  const lines = generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
    .toString()
    .trim()
    .split('\n')

  it.each<[string, string]>([
    ['with the line ends of another system', lines.join('\r\n')],
    ['on one line', lines.join(' ')],
    ['with written line ends', lines.join('\\n')],
    ['with line ends that are escaped twice', lines.join('\\\\n')],
    ['in a quoted mail', lines.join('\n> ')],
    ['in source code', `"${lines.join('\\n" +\n  "')}"`],
    ['without its end', lines.slice(0, -1).join('\n')],
  ])('is hidden as a private key %s', (_, key) => {
    const masked = createMasking().text(`first\n${key}\nlast`)
    expect(masked).toContain(mark)
    for (const line of lines.slice(4, -1)) expect(masked).not.toContain(line.slice(0, 16))
    expect(masked).toMatch(/^first\n.*\nlast$/s)
  })

  it.each([
    ['-----BEGIN PRIVATE KEY-----\n; rm -rf /home', `${mark}\n; rm -rf /home`],
    ['-----BEGIN PRIVATE KEY-----rm', `${mark}rm`],
    ['-----BEGIN PRIVATE KEY----- rm -rf /home -----END PRIVATE KEY-----', `${mark} rm -rf /home ${mark}`],
    ['-----BEGIN DELETE IT ALL PRIVATE KEY-----', '-----BEGIN DELETE IT ALL PRIVATE KEY-----'],
    [
      `-----BEGIN PRIVATE KEY-----\n${'A'.repeat(64)}\nthen delete\n${'B'.repeat(64)}\nAB==\n-----END PRIVATE KEY-----`,
      `${mark}\nthen delete\n${mark}`,
    ],
  ])('hides no ordinary words between the marks of a private key: %s', (text, shown) => {
    expect(createMasking().text(text)).toBe(shown)
  })

  it('as a key of an object becomes no other key: every value stays', () => {
    const token = (letter: string) => `ghp_${`${letter}1`.repeat(18)}`
    const masked = createMasking().value({ [token('a')]: 1, [mark]: 2, [token('b')]: 3, [`${mark} (2)`]: 4 })
    expect(masked).toEqual({ [`${mark} (3)`]: 1, [mark]: 2, [`${mark} (4)`]: 3, [`${mark} (2)`]: 4 })
  })

  const letters = 'aQbWcXdEeYfRgZhTiUjVkOlPmAnSoDpFqGrHsJtKuLvMwNxByC'
  const undigited = {
    'of GitHub': `ghp_${letters.slice(0, 36)}`,
    'of GitHub, for an installation': `ghs_${letters.slice(0, 36)}`,
    'of GitHub, fine-grained': `github_pat_${letters.slice(0, 22)}_${letters}`,
    'of Slack': `xoxb-${letters.slice(0, 24)}`,
    'of Slack, for a user': `xoxp-${letters.toLowerCase().slice(0, 24)}`,
    'of Slack, with a beginning that people write too': `xoxo-${letters.slice(0, 32)}`,
    'of AWS': 'AKIAIOSFODNNXEXAMPLE',
    'of OpenAI': `sk-${letters}`,
    'of OpenAI, for a project': `sk-proj-${letters.slice(0, 20)}-${letters.slice(20, 40)}_Ab`,
    'of OpenAI, in small letters': `sk-${letters.toLowerCase().slice(0, 48)}`,
    'of Anthropic': `sk-ant-api-${letters}`,
    'of this gateway': `sp_abcdefghij_${letters.slice(0, 43)}`,
    'of OpenAI, with its digit far behind': `sk-proj-${'Ab-Cd_'.repeat(8)}7`,
    'a JWT': `eyJhbGciOi${letters}${letters}.eyJzdWIiOi${letters}.${letters}`,
  }

  it.each(Object.entries(undigited))('%s is hidden without a digit in it', (_, token) => {
    expect(createMasking().text(`token=${token} behind`)).toBe(`token=${mark} behind`)
  })

  it.each(['sk-', 'sk-proj-', 'sk-ant-', 'xoxo-'])('beginning with %s is hidden whatever its letters are', (start) => {
    const alphabet = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
    const masking = createMasking()
    for (let round = 0; round < 1000; round++) {
      const random = createHash('sha512').update(`${start}${round}`).digest()
      const run = [...random.subarray(0, 40)].map((byte) => alphabet[byte % alphabet.length]).join('')
      expect(masking.text(start + run)).toBe(mark)
    }
  })

  it('is not seen in names that are made of words', () => {
    const anyWord = fc.string({ minLength: 2, maxLength: 12, unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz') })
    const styles: readonly ((words: string[]) => string)[] = [
      (words) => words.join('-'),
      (words) => words.join('_'),
      (words) => words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`).join('-'),
      (words) => words.join('-').toUpperCase(),
    ]
    fc.assert(
      fc.property(
        fc.constantFrom('sk-', 'sk-ant-', 'xoxo-'),
        fc.array(anyWord, { minLength: 4, maxLength: 12 }),
        fc.constantFrom(...styles),
        (start, words, toName) => {
          const name = start + toName(words)
          expect(createMasking().text(name)).toBe(name)
        },
      ),
      { numRuns: 1000 },
    )
  })

  it.each([
    'task-force-with-a-very-long-name-that-goes-on-and-on-and-on',
    'desk-0123456789-0123456789-0123456789-0123456789',
    'sk-learn-is-a-library-with-a-name-that-begins-like-a-token-does',
    'sk-learn-my-long-package-name-with-words',
    'sk-scrollableKeyboardAccessibleContainerView',
    'sk-Scrollable-Keyboard-Accessible-Container',
    'sk-ant-colony-optimization-for-the-routing-of-vehicles',
    'xoxo-from-all-of-your-friends-in-the-office',
    'sp_configure_the_number_of_concurrent_connections_here',
    '8f14e45fceea167a5a36dedd4bea2543c1a1b2c3d4e5f60718293a4b5c6d7e8f',
    'AKIA is how they begin; AKIAIOSFODNN7EXAMPLEX is one too long',
    'eyJhbGciOiJIUzI1NiJ9 is a header alone',
    '-----BEGIN CERTIFICATE-----\nMIIEow==\n-----END CERTIFICATE-----',
  ])('is not seen in: %s', (text) => {
    expect(createMasking().text(text)).toBe(text)
  })
})
