import { afterAll, beforeAll, expect, it } from 'vitest'
import { recording, runCli, runProcess, type Serving, serve, until } from './support.ts'

let gateway: Serving

beforeAll(async () => {
  gateway = await serve({ servers: { rec: recording() } })
  await until(() => (gateway.stderr().includes('connected rec') ? true : undefined))
})

afterAll(() => gateway[Symbol.asyncDispose]())

// The other tests run commands in a process that goes on afterwards, which does not show whether a command ends its own.
it.each([
  ['--version'],
  ['servers', '--help'],
  ['servers'],
  ['statsu'],
  ['statsu', '--json'],
  ['servers', 'list'],
  ['servers', 'get', 'nothing', '--json'],
  ['tools', 'call', 'rec_echo', '--arg', 'text=hello'],
  ['tools', 'call', 'rec_echo', '--args', '-'],
  ['users', 'list', '--as', 'nobody', '--password-stdin'],
  ['audit', 'export'],
  ['config', 'show'],
  ['doctor'],
])('a process with one command ends with the same output and exit code: %s %s', async (...words) => {
  const args = [...words, '--data', gateway.data]
  const options = { cwd: gateway.folder, input: '{"text":"piped"}' }
  const ended = await runProcess(args, options)
  const expected = await runCli(args, options)
  const isRecord = words[0] === 'audit' // it grows by every call
  expect(ended).toMatchObject({ code: expected.code, stderr: expected.stderr })
  if (!isRecord) expect(ended.stdout).toBe(expected.stdout)
  expect(ended.stdout + ended.stderr).not.toBe('')
})
