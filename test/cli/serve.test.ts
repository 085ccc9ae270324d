import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { describe, expect, it } from 'vitest'
import { collect, createFolder, recording, runCli, serve, startCli, takePort, until } from './support.ts'

describe('serve', () => {
  it('prints one line on standard output when it serves, and tells of its servers on standard error', async () => {
    await using gateway = await serve({
      servers: { good: recording(), bad: { transport: 'stdio', command: 'no-such' } },
    })
    await until(() => (/connected good, \d+ tools/.test(gateway.stderr()) ? true : undefined))
    await until(() => (/failed bad, spawn: /.test(gateway.stderr()) ? true : undefined))
    expect(gateway.stdout()).toBe(`sallyport ready ${gateway.url}\n`)
    expect(gateway.stderr()).toContain(`MCP address: ${gateway.url}/mcp`)
    expect(gateway.stderr()).toContain(`Dashboard: ${gateway.url}/`)
    expect(gateway.stderr()).toContain(`tokens create --agent my-agent --data ${gateway.data}`)
  })

  it('writes the time before what happens, and the last lines of a program that failed below its reason', async () => {
    await using gateway = await serve({ servers: { good: recording(), bad: failing('TOKEN is missing') } })
    await until(() => (/^\d\d:\d\d:\d\d connected good, \d+ tools$/m.test(gateway.stderr()) ? true : undefined))
    await until(() => (/^\d\d:\d\d:\d\d failed bad, spawn: /m.test(gateway.stderr()) ? true : undefined))
    expect(gateway.stderr()).toContain('\n  | TOKEN is missing\n')
  })

  it('writes nothing but JSON lines to standard error with --log-format json, without raw text of a server', async () => {
    const servers = { good: recording(), bad: failing('TOKEN is missing') }
    await using gateway = await serve({ servers }, '--log-format', 'json')
    const find = (message: string) =>
      until(() => toLines(gateway.stderr()).find((line) => line.msg === message) ?? undefined)
    expect(await find('ready')).toMatchObject({ mcpUrl: `${gateway.url}/mcp` })
    expect(await find('server connected')).toMatchObject({
      level: 30,
      server: 'good',
      scope: 'global',
      state: 'connected',
    })
    const failed = await find('server failed')
    expect(failed).toMatchObject({ level: 40, server: 'bad', code: 'server-broken', class: 'spawn', failures: 1 })
    expect(gateway.stderr()).not.toContain('TOKEN is missing')
    expect(gateway.stdout()).toBe(`sallyport ready ${gateway.url}\n`)
  })

  it('prints its ready line while a server is still connecting, and /readyz is 200 only later', async () => {
    const silent = { transport: 'stdio', command: process.execPath, args: ['-e', 'process.stdin.resume()'] }
    await using gateway = await serve({ listen: { ready: 600_000 }, servers: { silent } })
    expect(gateway.stdout()).toBe(`sallyport ready ${gateway.url}\n`)
    expect([(await gateway.fetch('/livez')).status, (await gateway.fetch('/readyz')).status]).toEqual([200, 503])
    expect((await gateway.run('servers', 'disable', 'silent')).code).toBe(0)
    await until(async () => ((await gateway.fetch('/readyz')).status === 200 ? true : undefined))
  })

  it('refuses a log format that it does not know', async () => {
    const ended = await runCli(['serve', '--log-format', 'xml'])
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('--log-format: must be text or json')
  })

  it('serves the dashboard with all of its files, as they are shipped', async () => {
    await using gateway = await serve({})
    const page = await (await fetch(`${gateway.url}/approvals/some-id`)).text()
    const files = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path)
    expect(files.length).toBeGreaterThanOrEqual(4)
    for (const path of files) {
      const reply = await fetch(`${gateway.url}${path}`)
      expect([path, reply.status]).toEqual([path, 200])
      expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'")
    }
    for (const path of ['/assets/nothing.js', '/assets/..%2fcli.js'])
      expect([401, 404]).toContain((await fetch(`${gateway.url}${path}`)).status)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 on %s', async (signal) => {
    await using gateway = await serve({ servers: { good: recording() } })
    expect(await gateway.stop(signal)).toBe(0)
    expect((await gateway.run('status')).code).toBe(4)
  })

  it('tells on standard error of a call that waits, with the link, and counts what comes in a flood', async () => {
    await using gateway = await serve({ servers: { good: recording() }, limits: { pending: 50 } })
    await until(() => (gateway.stderr().includes('connected good') ? true : undefined))
    const given = JSON.stringify({ path: 'a', text: 'the arguments stay out of it' })
    const call = (path: string) =>
      gateway.run('tools', 'call', 'good_write_thing', '--arg', `path=${path}`, '--no-wait', '--json')
    const first = await gateway.run('tools', 'call', 'good_write_thing', '--args', given, '--no-wait', '--json')
    const { approval } = first.json() as { approval: { id: string } }
    const line = `waiting for approval: good_write_thing, called by user:admin-token: ${gateway.url}/approvals/${approval.id}`
    await until(() => (gateway.stderr().includes(`${line}\n`) ? true : undefined))
    expect(gateway.stderr()).not.toContain('stay out of it')
    for (let batch = 0; batch < 3; batch++) await Promise.all([1, 2, 3].map((each) => call(`${batch}-${each}`)))
    expect(gateway.stderr().match(/waiting for approval: good_write_thing/g)).toHaveLength(5)
  })

  it('goes on when nobody reads along any more', async () => {
    await using gateway = await serve({ servers: { good: recording() } })
    await until(() => (gateway.stderr().includes('connected good') ? true : undefined))
    gateway.child.stdout?.destroy()
    gateway.child.stderr?.destroy()
    for (const action of ['disable', 'enable', 'reconnect'])
      expect((await gateway.run('servers', action, 'good')).code).toBe(0)
    await writeFile(join(gateway.folder, 'sallyport.yaml'), 'servers: [')
    await until(async () => {
      const { config } = (await gateway.run('status', '--json')).json() as { config: { problems: string[] } }
      return config.problems.length > 0 ? true : undefined
    })
    expect(await gateway.stop('SIGTERM')).toBe(0)
  })

  it('ends at once with 130 on the second signal', async () => {
    await using gateway = await serve({ servers: { good: recording() }, rules: [{ action: 'allow' }] })
    await until(() => (gateway.stderr().includes('connected good') ? true : undefined))
    const call = gateway.run('tools', 'call', 'good_echo', '--arg', 'text=slow', '--arg', 'delayMs=20000')
    await until(async () => {
      const { items } = (await gateway.run('calls', 'list', '--state', 'running', '--json')).json()
      return Array.isArray(items) && items.length > 0 ? true : undefined
    })
    gateway.child.kill('SIGTERM')
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await gateway.stop('SIGINT')).toBe(130)
    expect((await call).code).not.toBe(0)
  })

  it('ends with 2 and names every problem of the file by line and key', async () => {
    await using folder = await createFolder()
    const file = join(folder.path, 'broken.yaml')
    await writeFile(file, 'listen:\n  port: many\nservres: {}\n')
    const args = ['serve', '--config', file, '--data', join(folder.path, 'data'), '--port', '0']
    const ended = await runCli(args)
    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toMatch(/broken\.yaml:2: listen\.port: /)
    expect(ended.stderr).toMatch(/broken\.yaml:3: servres: .*did you mean `servers`/)
    expect(ended.stderr.match(/broken\.yaml:2: /g)).toHaveLength(1)
    const checked = await runCli(['config', 'check', file])
    expect(checked.code).toBe(2)
    expect((checked.stdout + checked.stderr).match(/broken\.yaml:2: /g)).toHaveLength(1)
    const document = await runCli([...args, '--json'])
    expect(document.code).toBe(2)
    expect(document.json()).toMatchObject({ error: { code: 'config-invalid' } })
  })

  it('ends with 2 when the named file is not there', async () => {
    await using folder = await createFolder()
    const ended = await runCli([
      'serve',
      '--config',
      join(folder.path, 'none.yaml'),
      '--data',
      join(folder.path, 'data'),
    ])
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('none.yaml')
  })

  it('ends with 1 when the port is taken, and says what to do', async () => {
    await using folder = await createFolder()
    await using taken = await takePort()
    const ended = await runCli(['serve', '--port', String(taken.port)], { cwd: folder.path })
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(new RegExp(`Port ${taken.port}.*used by another program[\\s\\S]*--port`))
  })

  it('refuses the data folder of another gateway', async () => {
    await using gateway = await serve({})
    const ended = await runCli(['serve', '--port', '0', '--data', gateway.data], { cwd: gateway.folder })
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('--data')
    expect((await gateway.run('status')).code).toBe(0)
  })

  it('prints a line on its first demo that connects an agent, and no second token later', async () => {
    await using folder = await createFolder()
    const args = ['serve', '--demo', '--port', '0']
    const first = await startDemo(args, folder.path)
    const [, url = '', token = ''] = await until(
      () =>
        /claude mcp add --transport http sallyport (\S+) --header "Authorization: Bearer (\S+)"/.exec(first.stderr()) ??
        undefined,
    )
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(url), {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      }),
    )
    await until(async () => ((await client.listTools()).tools.length > 0 ? true : undefined))
    await client.close()
    await first.stop()

    const second = await startDemo(args, folder.path)
    await until(() => (second.stderr().includes('tokens create --agent my-agent') ? true : undefined))
    expect(second.stderr()).not.toContain('Bearer')
    await second.stop()
  })
})

/** Ends at once with a message, as a program does that misses a setting. */
function failing(message: string) {
  return { transport: 'stdio', command: process.execPath, args: ['-e', `console.error('${message}'); process.exit(1)`] }
}

/** Every whole line must be JSON. */
function toLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

async function startDemo(args: string[], cwd: string) {
  const child = startCli(args, { cwd })
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  await until(() => (stdout().includes('sallyport ready') ? true : undefined))
  return {
    stderr,
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}
