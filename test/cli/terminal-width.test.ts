import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { recording, type Served, serveHere } from './support.ts'
import { hasTmux, openTerminal } from './terminal.ts'

const bin = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))
const server = 'documents-of-the-whole-team'
let gateway: Served

beforeAll(async () => {
  gateway = await serveHere({ servers: { [server]: recording() } })
  await gateway.run('servers', 'reconnect', server)
  await gateway.run('tools', 'call', `${server}_delete_everything`, '--no-wait')
})

afterAll(() => gateway?.[Symbol.asyncDispose]())

it.for<[words: string, line: RegExp]>([
  ['calls list', /^call_\w{12,19} +documents-of-the-whole-team_delete_everything +waiting/m],
  ['approvals list', /^approval_\w{12,19} +documents-of-the-whole-team_delete_everything +waiting$/m],
  ['tools list', /^documents-of-the-whole-team_delete_everything +write +\S.*$/m],
  ['audit list', /^instance_\w{12,19}:\d+ +approval +documents-of-the-whole-team_delete_everything/m],
])('%s fits 80 columns with the whole name of a tool', async ([words, line], { skip }) => {
  skip(!hasTmux, 'tmux is not installed')
  await using pane = await openTerminal(`${process.execPath} ${bin} ${words} --data ${gateway.data}`)
  const screen = await pane.shows(/ended with/)
  expect(screen).toMatch(line)
})

it('prints every column and whole ids when the output is piped', async () => {
  const { stdout } = await gateway.run('calls', 'list')
  expect(stdout).toMatch(/^ID +STARTED +PRINCIPAL +TOOL +RISK +STATE +WAITED +WORKED$/m)
  expect(stdout).toMatch(/^call_\w{19} /m)
})
