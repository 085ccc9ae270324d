import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'
import { eventNames } from '../../src/contract/events.ts'
import { temporaryFolder } from '../storage/support.ts'

const guide = readFileSync(new URL('../../docs/guide/webhooks.md', import.meta.url), 'utf8')
const secret = `whsec_${Buffer.alloc(24, 3).toString('base64')}`

it('shows in the guide how to check a message, in words that work', async () => {
  const [, program = ''] = /```js\n([\s\S]*?)```/.exec(guide) ?? []
  const file = join(temporaryFolder(), 'check.mjs')
  writeFileSync(file, `process.env.CHAT_WEBHOOK = '${secret}'\n${program}\nexport { isGenuine }\n`)
  const { isGenuine } = await import(file)
  const [body, at] = ['{"type":"test"}', new Date()]
  const headers = (time: Date, by = secret) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
    'webhook-signature': `v1,AAAA ${new Webhook(by).sign('msg_1', time, body)}`,
  })
  expect(isGenuine(headers(at), body)).toBe(true)
  expect(isGenuine(headers(at), `${body} `)).toBe(false)
  expect(isGenuine(headers(at, `whsec_${Buffer.alloc(24, 4).toString('base64')}`), body)).toBe(false)
  expect(isGenuine(headers(new Date(at.getTime() - 400_000)), body)).toBe(false)
})

it('names every event in the guide', () => {
  expect(eventNames.filter((name) => !guide.includes(`\`${name}\``))).toEqual([])
})
