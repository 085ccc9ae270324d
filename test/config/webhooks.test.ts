import { expect, it } from 'vitest'
import { formatProblem, parseConfig, toShownConfig } from '../../src/config/config.ts'
import { configOf, problemsOf } from './support.ts'

const whsec = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
const file = '/etc/sallyport.yaml'

function text(fields: Record<string, unknown>): string {
  const entry = { url: 'https://chat.example.com/hook', secret: '${HOOK}', events: ['approval-requested'], ...fields }
  return `webhooks: { chat: ${JSON.stringify(entry)} }\n`
}

const problems = (fields: Record<string, unknown>) => problemsOf(file, text(fields)).map(formatProblem)

it.each([
  [{ secret: undefined }, 'webhooks.chat.secret: is missing'],
  [{ secret: 'hunter2' }, 'webhooks.chat.secret: must be ${NAME}, or whsec_ followed by 24 to 64 bytes in base64'],
  [
    { secret: 'whsec_c2hvcnQ=' },
    'webhooks.chat.secret: must be ${NAME}, or whsec_ followed by 24 to 64 bytes in base64',
  ],
  [{ secret: '${HOOK' }, 'webhooks.chat.secret: has a ${ without a closing }; write $${ for a literal ${'],
  [{ events: [] }, 'webhooks.chat.events: must not be empty'],
  [{ url: 'chat.example.com' }, 'webhooks.chat.url: must be a complete address such as https://gate.example.com'],
  [{ url: 'ftp://chat.example.com' }, 'webhooks.chat.url: must begin with https:// or http://'],
  [
    { url: 'https://me:pass@chat.example.com' },
    'webhooks.chat.url: must not contain a user name or password: receivers verify messages by their signature',
  ],
  [{ headers: {} }, 'webhooks.chat.headers: is not a known key'],
])('points out %o', (fields, message) => {
  expect(problems(fields)).toEqual([`${file}:1: ${message}`])
})

it('suggests the event that was probably meant', () => {
  const [problem] = problems({ events: ['approval-requested', 'approval-answerd'] })
  expect(problem).toMatch(
    /^\/etc\/sallyport.yaml:1: webhooks.chat.events.1: must be call-started, .* or config-rejected/,
  )
  expect(problem).toMatch(/did you mean `approval-answered`\?/)
})

it('notices an address that everybody on the way can read, and a secret in plain text', () => {
  const notices = (fields: Record<string, unknown>) => {
    const reading = parseConfig(file, text(fields))
    if (!reading.ok) throw new Error('It has problems')
    return reading.notices(0).map(({ key }) => key)
  }
  expect(notices({})).toEqual([])
  expect(notices({ url: 'http://127.0.0.1:8080/hook' })).toEqual([])
  expect(notices({ url: 'http://chat.example.com/hook' })).toEqual(['webhooks.chat.url'])
  expect(notices({ secret: whsec })).toEqual(['webhooks.chat.secret'])
  expect(notices({ secret: `\${HOOK:-${whsec}}` })).toEqual(['webhooks.chat.secret'])
  expect(notices({ secret: '${HOOK} ${HOOK_BEFORE}' })).toEqual([])
})

it('shows the name of a secret, and never a secret', () => {
  const shown = (secret: string) => toShownConfig(configOf(text({ secret }))).webhooks.chat?.secret
  expect(shown('${HOOK}')).toBe('${HOOK}')
  expect(shown(whsec)).toBe('[secret]')
  expect(shown(`\${HOOK} ${whsec}`)).toBe('[secret]')
  expect(shown(`\${HOOK:-${whsec}}`)).toBe('[secret]')
})
