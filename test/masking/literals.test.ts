import { describe, expect, it } from 'vitest'
import {
  findLiterals,
  findPlaceholders,
  hideLiterals,
  type LiteralFields,
  replaceLiterals,
} from '../../src/masking/masking.ts'

const github = `ghp_${'a1B2'.repeat(9)}`
const jwt = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${'s1G_'.repeat(8)}`

/** The definition after each literal was moved, and the moved values by their suggested names. */
function move(fields: LiteralFields, server = 'github') {
  const literals = findLiterals(server, fields)
  const after = replaceLiterals(fields, literals, ({ name }) => `\${${name}}`)
  return { after, moved: Object.fromEntries(literals.map(({ name, secret }) => [name, secret])) }
}

const moved: [title: string, before: LiteralFields, after: LiteralFields, secrets: Record<string, string>][] = [
  [
    'a bearer token keeps its scheme',
    { headers: { Authorization: 'Bearer abc' } },
    { headers: { Authorization: 'Bearer ${GITHUB_AUTHORIZATION}' } },
    { GITHUB_AUTHORIZATION: 'abc' },
  ],
  [
    'a basic header keeps its scheme',
    { headers: { authorization: 'Basic dTpw' } },
    { headers: { authorization: 'Basic ${GITHUB_AUTHORIZATION}' } },
    { GITHUB_AUTHORIZATION: 'dTpw' },
  ],
  [
    'a header without a scheme is moved whole',
    { headers: { 'X-API-Key': 'k 1' } },
    { headers: { 'X-API-Key': '${GITHUB_API_KEY}' } },
    { GITHUB_API_KEY: 'k 1' },
  ],
  [
    'a cookie is moved whole',
    { headers: { Cookie: 'a=1; b=2' } },
    { headers: { Cookie: '${GITHUB_COOKIE}' } },
    { GITHUB_COOKIE: 'a=1; b=2' },
  ],
  [
    'of a cookie with templates only the rest is moved',
    { headers: { Cookie: 'a=${A}; b=2' } },
    { headers: { Cookie: 'a=${A}; b=${GITHUB_COOKIE}' } },
    { GITHUB_COOKIE: '2' },
  ],
  [
    'a token in any header is moved',
    { headers: { 'X-Other': `a ${github} b` } },
    { headers: { 'X-Other': 'a ${GITHUB_OTHER} b' } },
    { GITHUB_OTHER: github },
  ],
  [
    'a variable keeps its name',
    { env: { GITHUB_TOKEN: 'abc' } },
    { env: { GITHUB_TOKEN: '${GITHUB_TOKEN}' } },
    { GITHUB_TOKEN: 'abc' },
  ],
  [
    'a variable with a common name gets the name of the server',
    { env: { API_KEY: 'abc' } },
    { env: { API_KEY: '${GITHUB_API_KEY}' } },
    { GITHUB_API_KEY: 'abc' },
  ],
  [
    'a token in any variable is moved',
    { env: { OTHER_SETTING: jwt } },
    { env: { OTHER_SETTING: '${OTHER_SETTING}' } },
    { OTHER_SETTING: jwt },
  ],
  [
    'the password of an address in a variable is moved',
    { env: { DATABASE_URL: 'postgres://me:p%40ss@db/x' } },
    { env: { DATABASE_URL: 'postgres://me:${GITHUB_PASSWORD}@db/x' } },
    { GITHUB_PASSWORD: 'p%40ss' },
  ],
  [
    'headers in JSON are moved',
    { env: { HEADERS: '{"Authorization": "Bearer abc", "Version": "1"}' } },
    { env: { HEADERS: '{"Authorization": "Bearer ${GITHUB_AUTHORIZATION}", "Version": "1"}' } },
    { GITHUB_AUTHORIZATION: 'abc' },
  ],
  [
    'a parameter of the address is moved',
    { url: 'https://x.test/mcp?a=1&api_key=abc#b' },
    { url: 'https://x.test/mcp?a=1&api_key=${GITHUB_API_KEY}#b' },
    { GITHUB_API_KEY: 'abc' },
  ],
  [
    'a token in the path of the address is moved',
    { url: `https://x.test/${github}/mcp` },
    { url: 'https://x.test/${GITHUB_URL_TOKEN}/mcp' },
    { GITHUB_URL_TOKEN: github },
  ],
  [
    'a fallback is moved under the name of its template',
    { headers: { Authorization: '${MY_AUTH:-Bearer abc}' } },
    { headers: { Authorization: '${MY_AUTH}' } },
    { MY_AUTH: 'Bearer abc' },
  ],
  [
    'a token beside a template is moved',
    { env: { X_TOKEN: `\${A} ${github}` } },
    { env: { X_TOKEN: '${A} ${X_TOKEN}' } },
    { X_TOKEN: github },
  ],
  [
    'an escaped template is stored without the escape',
    { env: { X_TOKEN: 'a$${b}c' } },
    { env: { X_TOKEN: '${X_TOKEN}' } },
    { X_TOKEN: 'a${b}c' },
  ],
]

it.each(moved)('%s', (_title, before, after, secrets) => {
  expect(move(before)).toEqual({ after, moved: secrets })
})

const asArguments: [before: string[], after: string[]][] = [
  [['--api-key=abc'], ['--api-key=${GITHUB_API_KEY}']],
  [
    ['--token', 'abc', '--port', '80'],
    ['--token', '${GITHUB_TOKEN}', '--port', '80'],
  ],
  [
    ['run', '-e', 'SLACK_TOKEN=abc', 'image'],
    ['run', '-e', 'SLACK_TOKEN=${GITHUB_SLACK_TOKEN}', 'image'],
  ],
  [
    ['--header', 'Authorization: Bearer abc'],
    ['--header', 'Authorization: Bearer ${GITHUB_AUTHORIZATION}'],
  ],
  [
    ['--header', 'Authorization:Bearer abc'],
    ['--header', 'Authorization:Bearer ${GITHUB_AUTHORIZATION}'],
  ],
  [['postgres://me:abc@db/x'], ['postgres://me:${GITHUB_PASSWORD}@db/x']],
  [
    [`x${github}`, github],
    [`x${github}`, '${GITHUB_TOKEN}'],
  ],
]

it.each(asArguments)('an argument keeps its flag: %s', (before, args) => {
  expect(move({ args: before }).after).toEqual({ args, secretsInArguments: true })
})

describe('what is no literal stays', () => {
  it.each<LiteralFields>([
    { env: { KEYBOARD_LAYOUT: 'de' } },
    { env: { TOKENIZERS_PARALLELISM: 'false' } },
    { env: { PUBLIC_KEY_PATH: '/x' } },
    { env: { PUBLIC_KEY: 'abc' } },
    { env: { MAX_TOKENS: '4096', TOKEN_LIMIT: 'high', USE_TOKEN: 'true' } },
    { env: { KEY_FILE: 'keys/a.pem', SSH_KEY: '~/.ssh/id_ed25519', WINDOWS_KEY: 'C:\\keys\\a' } },
    { env: { TOKEN_URL: 'https://auth.test/token', PATTERN: 'abc', SECRETARY: 'anna', MONKEY: 'x' } },
    { env: { GITHUB_TOKEN: '${GITHUB_TOKEN}', A_KEY: 'pre-${B}', C_KEY: '${D:-}' } },
    { headers: { Authorization: 'Bearer ${TOKEN}', Accept: 'application/json', 'X-Api-Key': '${A}${B}' } },
    { url: 'https://x.test/mcp?mode=read&tokens=4&key=${KEY}' },
    { url: 'https://${HOST}/mcp' },
    { args: ['-y', '@scope/key-server', '--port', '80', '--keys', '--key-file=/a', '--token=${A}', 'https://x.test/'] },
    { args: ['--url', 'https://me@x.test/', 'note: this', 'Content-Type: text/plain'] },
  ])('%j', (fields) => {
    expect(findLiterals('github', fields)).toEqual([])
    expect(findPlaceholders('github', fields)).toEqual([])
  })
})

it('finds a secret that begins with a slash and a password that is a number', () => {
  const env = { AWS_SECRET_ACCESS_KEY: '/wJalrXUtnFEMI7/K7MDENGbPxRfiCYEXAMPLE', DB_PASSWORD: '12345678' }
  expect(findLiterals('s3', { env }).map(({ secret }) => secret)).toEqual(Object.values(env))
})

it.each([
  '<your-token>',
  'YOUR_API_KEY',
  'your-token-here',
  'xxx',
  '***',
  `ghp_${'x'.repeat(36)}`,
  'sk-...',
  '{{TOKEN}}',
  '$TOKEN',
  '%TOKEN%',
  '',
  '[secret]',
])('reports the placeholder %j separately, because people must fill it in', (text) => {
  const fields = { headers: { Authorization: `Bearer ${text}` }, env: { A_TOKEN: text } }
  expect(findLiterals('github', fields)).toEqual([])
  expect(findPlaceholders('github', fields)).toHaveLength(2)
})

it.each(['changeme', 'my secret word', 'hunter2', '["k1","k2"]', 'xx1', 'your cat', '0000'])(
  'takes %j for a secret',
  (text) => {
    expect(findLiterals('a', { env: { A_PASSWORD: text } })).toHaveLength(1)
  },
)

it('suggests only names that a secret can have', () => {
  const names = ['sallyport-x', '3d', 'x'.repeat(64), 'a.b-c'].flatMap((server) =>
    findLiterals(server, { headers: { [`x-${'y'.repeat(90)}-key`]: 'abc' } }).map(({ name }) => name),
  )
  expect(names.map((name) => name.slice(0, 16))).toEqual([
    '_SALLYPORT_X_YYY',
    '_3D_YYYYYYYYYYYY',
    'X'.repeat(16),
    'A_B_C_YYYYYYYYYY',
  ])
  expect(names.every((name) => name.length <= 121)).toBe(true)
})

it('shows [secret] in the place of each literal, and keeps the rest', () => {
  const fields = { url: 'https://x.test/?key=abc&a=1', headers: { Authorization: 'Bearer abc', Accept: 'a' } }
  const hidden = hideLiterals('x', fields)
  expect(hidden).toEqual({
    url: 'https://x.test/?key=[secret]&a=1',
    headers: { Authorization: 'Bearer [secret]', Accept: 'a' },
  })
  expect(hideLiterals('x', hidden)).toBe(hidden)
})

it('reads a long text in time that grows with its length', () => {
  const long = [
    'a://'.repeat(20_000),
    '${'.repeat(40_000),
    '"a":"'.repeat(20_000),
    '{"a'.repeat(20_000),
    `?a=${'&a'.repeat(40_000)}`,
    `${github} ü `.repeat(2000),
    'ph_'.repeat(30_000),
    'your_'.repeat(20_000),
  ]
  for (const text of long) {
    findLiterals('a', {
      args: [text],
      env: { A_TOKEN: text, OTHER: text },
      headers: { 'x-key': text, other: text },
      url: text,
    })
  }
})
