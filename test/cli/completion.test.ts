import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFolder, findFreePort, recording, runCli, type Served, serveHere } from './support.ts'

const run = promisify(execFile)
const bin = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))
let gateway: Served

beforeAll(async () => {
  gateway = await serveHere({ servers: { rec: recording(), records: { ...recording(), enabled: false } } })
  await gateway.run('servers', 'reconnect', 'rec')
  await gateway.run('agents', 'add', 'reviewer')
})

afterAll(() => gateway?.[Symbol.asyncDispose]())

async function complete(...words: string[]): Promise<string[]> {
  const ended = await runCli(['__complete', '--', ...words], { env: { SALLYPORT_DATA: gateway.data } })
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  return ended.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split('\t')[0] ?? '')
}

describe('completion', () => {
  it('knows commands and options', async () => {
    expect(await complete('ser')).toEqual(['serve', 'servers'])
    expect(await complete('')).not.toContain('__complete')
    expect(await complete('servers', 're')).toEqual(['remove', 'reconnect'])
    expect(await complete('servers', '--json', 'lo')).toEqual(['logs'])
    expect(await complete('servers', 'logs', '--f')).toEqual(['--follow'])
    expect(await complete('servers', 'logs', '--')).toContain('--gateway')
    expect(await complete('servers', 'logs', '--')).not.toContain('--url')
  })

  it('asks the running gateway for names', async () => {
    expect(await complete('servers', 'get', 'rec')).toEqual(['rec', 'records'])
    expect(await complete('servers', 'logs', '-f', 'reco')).toEqual(['records'])
    expect(await complete('tools', 'show', 'rec_ec')).toEqual(['rec_echo'])
    expect(await complete('tools', 'list', '--server', '')).toEqual(['rec', 'records'])
    expect(await complete('tokens', 'create', '--agent', 'rev')).toEqual(['reviewer'])
    expect(await complete('calls', 'list', '--principal', 'agent:')).toEqual(['agent:reviewer'])
    await gateway.run('tools', 'call', 'rec_write_thing', '--no-wait')
    expect(await complete('approvals', 'deny', 'app')).toEqual([expect.stringMatching(/^approval_/)])
  })

  it('completes nothing for the command of a server, or where an argument is given already', async () => {
    expect(await complete('servers', 'add', 'x', '--', 'npx', '')).toEqual([])
    expect(await complete('servers', 'get', 'rec', '')).toEqual([])
  })

  it('knows shells and error codes without a gateway', async () => {
    await using folder = await createFolder()
    const ask = (...words: string[]) => runCli(['__complete', '--', ...words], { cwd: folder.path })
    expect((await ask('explain', 'approval-e')).stdout).toMatch(/^approval-expired\tThe approval expired .*\.\n$/)
    expect((await ask('completion', 'z')).stdout).toBe('zsh\t\n')
  })

  it('is silent and quick without a gateway', async () => {
    await using folder = await createFolder()
    const none = await runCli(['__complete', '--', 'servers', 'get', ''], {
      cwd: folder.path,
      env: { HOME: folder.path },
    })
    expect(none).toMatchObject({ code: 0, stdout: '', stderr: '' })
    const url = `http://127.0.0.1:${await findFreePort()}`
    const away = await runCli(['__complete', '--', '--gateway', url, '--token', 'x', 'servers', 'get', ''])
    expect(away).toMatchObject({ code: 0, stdout: '', stderr: '' })
    const mute = createServer((socket) => void socket.resume()).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const startedAt = performance.now()
    const silent = `http://127.0.0.1:${Object(mute.address()).port}`
    const late = await runCli(['__complete', '--', '--gateway', silent, '--token', 'x', 'servers', 'get', ''])
    expect(late).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect(performance.now() - startedAt).toBeLessThan(8000)
    mute.close()
  })

  it('works in bash, also behind a colon', async () => {
    const { stdout: script } = await runCli(['completion', 'bash'])
    const press = async (line: string) => {
      const ask = `sallyport() { "${process.execPath}" "${bin}" "$@"; }
        ${script}
        COMP_LINE=${JSON.stringify(line)} COMP_POINT=${line.length}
        _sallyport
        printf '%s\\n' "\${COMPREPLY[@]}"`
      const env = { ...process.env, SALLYPORT_DATA: gateway.data }
      return (await run('bash', ['--norc', '-c', ask], { env })).stdout.trim().split('\n')
    }
    expect(await press('sallyport servers get reco')).toEqual(['records'])
    expect(await press('sallyport servers ge')).toEqual(['get'])
    expect(await press('sallyport calls list --principal agent:re')).toEqual(['reviewer'])
  })

  it('has a script for every shell, and names the shells that it knows', async () => {
    for (const shell of ['zsh', 'fish']) {
      const ended = await runCli(['completion', shell])
      expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('sallyport __complete --') })
    }
    const ended = await runCli(['completion', 'csh'])
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining('shell: must be bash, zsh or fish') })
  })
})
