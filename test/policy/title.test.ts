import { expect, it } from 'vitest'
import type { JsonObject } from '../../src/contract/json.ts'
import { toTitle } from '../../src/policy/title.ts'

it.each<[string, JsonObject, string]>([
  ['merge_pull_request', { owner: 'acme', repo: 'shop', pull_number: 481 }, 'Merge pull request 481 in acme/shop'],
  [
    'merge_pull_request',
    { repository: 'acme/shop', number: 481, method: 'squash' },
    'Merge pull request 481 in acme/shop',
  ],
  ['createIssue', { project: 'SHOP', title: 'Broken link' }, 'Create issue Broken link in SHOP'],
  ['write_file', { path: '/srv/docs/a.txt', content: 'x' }, 'Write file /srv/docs/a.txt'],
  ['post-message', { channel: '#releases', text: 'hello' }, 'Post message in #releases'],
  ['restart', {}, 'Restart'],
  ['send', { subject: 'line\nbreak', to: 'a@example.com' }, 'Send a@example.com'],
  ['write_file', { path: 'x'.repeat(61) }, 'Write file'],
  ['delete_rows', { table: 'orders', name: 'orders' }, 'Delete rows in orders'],
])('says %s with %j as a colleague would', (tool, given, title) => {
  expect(toTitle(tool, given)).toBe(title)
})
