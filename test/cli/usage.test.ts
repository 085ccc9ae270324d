import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { createFolder, findFreePort, runCli } from './support.ts'

function listCommands(command: Command, path: string[] = []): string[][] {
  return [path, ...command.commands.flatMap((each) => listCommands(each, [...path, each.name()]))]
}

describe('help', () => {
  it('stands on standard output, with an example, for every command', async () => {
    const paths = listCommands(createProgram({ code: 0, trailing: [] }))
    expect(paths.length).toBeGreaterThan(30)
    for (const path of paths) {
      const { code, stdout } = await runCli([...path, '--help'])
      expect({ path, code }).toEqual({ path, code: 0 })
      expect(stdout).toMatch(/Examples:\n {2}\$ .*sallyport/)
      expect(stdout).toContain('--json')
    }
  })

  it('takes the place of a command that is missing, as wrong usage', async () => {
    const ended = await runCli(['servers'])
    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toContain('Usage: sallyport servers')
  })
})

describe('wrong usage ends with 2 and says what was meant', () => {
  it.each([
    [['statsu'], /unknown command 'statsu'.*Did you mean status\?/],
    [['servers', 'lst'], /unknown command 'lst'.*Did you mean list\?/],
    [['status', '--jsno'], /unknown option '--jsno'.*Did you mean --json\?/],
    [['servers', 'get'], /missing required argument 'name'/],
    [['tools', 'list', 'everything'], /too many arguments/],
    [['audit', 'list', '--limit', 'many'], /--limit: /],
    [['audit', 'list', '--kind', 'thought'], /--kind: /],
    [['calls', 'watch', '--state', 'asleep'], /--state: must be /],
    [['calls', 'watch', '--retry', 'often'], /--retry: must be a whole number from 0 to 86400, in seconds/],
    [['completion'], /missing required argument 'shell'/],
    [['config', 'edit', '--gateway', 'https://gate.example.com'], /remove --gateway and SALLYPORT_URL/],
    [['servers', 'get', 'files', '--scope', 'moon'], /--scope: must be global or KIND:NAME/],
    [['tokens', 'create'], /--agent: is missing: give the name of the agent/],
    [['tokens', 'create', '--agent', 'a', '--expires', 'soon'], /--expires: must be a time/],
    [['serve', '--port', '99999'], /--port: must be a whole number from 0 to 65535/],
    [['serve', '--port', 'abc'], /--port: must be a whole number from 0 to 65535/],
    [['serve', '--port', ''], /--port: must be a whole number/],
    [['serve', '--linger', '-1'], /--linger: must be a whole number from 0 to 86400, in seconds/],
    [
      ['grants', 'add', '--tools', 'x', '--principal', 'agent:a', '--calls', '1.5', '--minutes', '5'],
      /--calls: must be a whole/,
    ],
    [['approvals', 'watch', '--retry', 'long'], /--retry: must be a whole number/],
    [['servers', 'add', 'x', '--url', 'notaurl'], /url: must be a complete https:\/\/ or http:\/\/ address/],
    [['servers', 'add', 'x', '--url', 'ftp://example.com'], /url: must be a complete/],
    [['servers', 'add', 'x', '--url', 'https://'], /url: must be a complete/],
    [
      ['servers', 'validate', '--url', 'https://me:hunter2@example.com/mcp'],
      /url: must not contain a user name or password/,
    ],
    [['tools', 'list', '--', 'ls'], /This command takes no words after --/],
    [['servers', 'add', 'My_files'], /exactly one of/],
    [['servers', 'add', 'files', 'npx', 'x'], /too many arguments[\s\S]*Put -- before the command/],
    [['tools', 'call', 'x', '--args', '{'], /--args is not JSON/],
    [['tools', 'call', 'x', '--args', '{}', '--arg', 'a=b'], /not both/],
  ])('%j', async (args, said) => {
    const ended = await runCli(args)
    expect(ended.stderr).toMatch(said)
    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).not.toContain('hunter2')
  })

  it('is one JSON document on standard output with --json', async () => {
    for (const args of [
      ['statsu', '--json'],
      ['--json', 'servers'],
      ['servers', 'get', '--json'],
      ['tokens', 'create', '--json'],
    ]) {
      const ended = await runCli(args)
      expect(ended.code).toBe(2)
      expect(ended.json()).toMatchObject({
        error: { code: 'request-invalid', hint: expect.stringContaining('sallyport') },
      })
    }
  })
})

describe('a gateway that is not there', () => {
  it('ends with 4 and says how to start one', async () => {
    await using folder = await createFolder()
    const ended = await runCli(['status'], { cwd: folder.path })
    expect(ended).toMatchObject({ code: 4, stdout: '' })
    expect(ended.stderr).toMatch(/No gateway runs on the data folder .*\.sallyport[\s\S]*sallyport serve/)
  })

  it('ends with 4 where nobody listens', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`
    const ended = await runCli(['--json', 'status', '--url', url, '--token', 'x'])
    expect(ended.code).toBe(4)
    expect(ended.json()).toMatchObject({ error: { code: 'unreachable' } })
  })

  it('ends with 3 where there is no token', async () => {
    await using folder = await createFolder()
    const ended = await runCli(['status', '--json', '--url', 'http://127.0.0.1:9'], { cwd: folder.path })
    expect(ended.code).toBe(3)
    expect(ended.json()).toMatchObject({ error: { code: 'token-missing' } })
  })
})

describe('the address of the gateway', () => {
  it('is --gateway in every command, and --url means the same', async () => {
    const nowhere = `http://127.0.0.1:${await findFreePort()}`
    for (const words of [
      ['status', '--gateway', nowhere],
      ['--gateway', nowhere, 'servers', 'list'],
      ['servers', 'get', 'x', '--url', nowhere],
      ['servers', 'add', 'x', '--url', 'https://example.com/mcp', '--gateway', nowhere],
    ]) {
      const ended = await runCli([...words, '--token', 'x', '--json'])
      expect(ended).toMatchObject({ code: 4 })
      expect(ended.stdout).toContain(nowhere)
    }
  })
})

describe('help of one command', () => {
  it('lists its own options, then the global ones, and ends with examples', async () => {
    const { stdout } = await runCli(['servers', 'add', '--help'])
    const places = ['\nOptions:\n', '\nGlobal options:\n', '--gateway <url>', '\nExamples:\n'].map((text) =>
      stdout.indexOf(text),
    )
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    expect(places).not.toContain(-1)
    expect(stdout.match(/--json/g)).toHaveLength(1)
    expect(stdout).toMatch(/--url <url> +address of the server/)
  })
})
