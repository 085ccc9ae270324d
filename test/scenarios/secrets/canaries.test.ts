import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { stringify } from 'yaml'
import { collect, createFolder, runCli, startCli, until } from '../../cli/support.ts'
import { programPath } from '../../support/programs.ts'

const program = programPath('test/scenarios/secrets/telling-server')

/** Characters that every encoding writes in another way are in each of them. */
const createCanary = (n: number) => `canary/${n}+${randomBytes(12).toString('base64')} "&"`
const inHeader = (n: number) => `canary-${n}+${randomBytes(12).toString('base64')}&%`

/** Every listed way of writing a value; of base64 the middle, which no neighbour changes. */
function formsOf(value: string): string[] {
  const base64 = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), Buffer.from(value)])
      .toString('base64')
      .replaceAll('=', '')
    return text.slice(4, -4)
  })
  const hex = Buffer.from(value).toString('hex')
  const json = JSON.stringify(value).slice(1, -1)
  return [value, ...base64, hex, hex.toUpperCase(), encodeURIComponent(value), json, JSON.stringify(json).slice(1, -1)]
}

type Sink = { readonly name: string; readonly text: string }

function sweep(sinks: readonly Sink[], canaries: ReadonlyMap<string, string>): string[] {
  return [...canaries].flatMap(([name, value]) =>
    formsOf(value).flatMap((form, index) =>
      sinks.filter(({ text }) => text.includes(form)).map((sink) => `${name} in ${sink.name} (form ${index})`),
    ),
  )
}

it('fifty canaries, handed to servers that tell everything, are found nowhere but where they belong', {
  timeout: 240_000,
}, async () => {
  await using folder = await createFolder()
  const data = join(folder.path, 'data')
  const canaries = new Map<string, string>()
  const make = (name: string, value: string) => {
    canaries.set(name, value)
    return value
  }
  for (let n = 0; n < 20; n++) make(`STORED_${n}`, createCanary(n))
  for (let n = 20; n < 34; n++) make(`HEADER_${n}`, inHeader(n))
  for (let n = 34; n < 42; n++) make(`ENV_${n}_TOKEN`, createCanary(n))
  for (let n = 42; n < 46; n++) make(`ARGUMENT_${n}`, createCanary(n))
  for (let n = 46; n < 50; n++) make(`ADDRESS_${n}`, `canary${n}${randomBytes(12).toString('hex')}`)
  expect(canaries.size).toBe(50)
  const named = (start: string) => [...canaries.keys()].filter((name) => name.startsWith(start))
  const variables = named('ENV_')

  const http = spawn(process.execPath, [program, '--http'], { stdio: ['pipe', 'pipe', 'ignore'] })
  const [line]: string[] = await once(createInterface({ input: http.stdout }), 'line')
  const url = line?.replace('listening ', '') ?? ''
  const headers = Object.fromEntries(
    named('HEADER_').map((name) => [`X-Told-${name.replace('_', '-')}`, `\${${name}}`]),
  )
  const address = named('ADDRESS_').map((name) => `token=\${${name}}`)
  const config = {
    environment: variables,
    rules: [{ tools: '*', action: 'allow' }],
    servers: {
      remote: { transport: 'http', url: `${url}/mcp?${address.slice(0, 2).join('&')}`, headers },
      moved: { transport: 'http', url: `${url}/moved?${address.slice(2).join('&')}`, headers },
      broken: { transport: 'http', url: `${url}/broken`, headers },
      nowhere: { transport: 'http', url: `http://127.0.0.1:9/?${address.join('&')}`, headers },
      local: {
        transport: 'stdio',
        command: process.execPath,
        args: [program, '--stdio', ...named('ARGUMENT_').map((name) => `\${${name}}`)],
        secretsInArguments: true,
        env: Object.fromEntries([...named('STORED_'), ...variables].map((name) => [`TOLD_${name}`, `\${${name}}`])),
      },
      absent: { transport: 'stdio', command: '/nowhere/${STORED_0}', secretsInArguments: true },
    },
  }
  const file = join(folder.path, 'sallyport.yaml')
  await writeFile(file, stringify(config))
  const env = { ...Object.fromEntries(variables.map((name) => [name, canaries.get(name)])), SALLYPORT_LOG: 'debug' }
  const gateway = startCli(['serve', '--config', file, '--data', data, '--port', '0'], { cwd: folder.path, env })
  const [stdout, stderr] = [collect(gateway, 'stdout'), collect(gateway, 'stderr')]
  const sinks: Sink[] = []
  const base = await until(() => /^sallyport ready (\S+)$/m.exec(stdout())?.[1])

  async function cli(args: readonly string[], input?: string): Promise<string> {
    const ended = await runCli([...args, '--data', data], { cwd: folder.path, env, input })
    sinks.push({ name: `sallyport ${args.join(' ')}`, text: ended.stdout + ended.stderr })
    return ended.stdout
  }

  for (const name of [...canaries.keys()].filter((each) => !variables.includes(each))) {
    const value = canaries.get(name) ?? ''
    const body = JSON.stringify({ value })
    const token = (await readFile(join(data, 'admin-token'), 'utf8')).trim()
    const answer = await fetch(`${base}/api/secrets/${name}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    })
    sinks.push({ name: `PUT secrets/${name}`, text: await answer.text() })
    expect(answer.status).toBe(200)
  }
  await cli(['secrets', 'set', 'STORED_0', '--json'], `${canaries.get('STORED_0')}\n`)
  const administrator = (await readFile(join(data, 'admin-token'), 'utf8')).trim()
  const made = await cli(['tokens', 'create', '--agent', 'tester', '--json'])
  const agent: string = JSON.parse(made).token

  async function ask(
    path: string,
    body?: unknown,
    token = administrator,
    method = body === undefined ? 'GET' : 'POST',
  ) {
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        accept: 'application/json, text/event-stream',
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    sinks.push({ name: `${method} ${path}`, text: text + JSON.stringify([...answer.headers]) })
    return text
  }

  await until(async () => {
    const servers: { name: string; state: string }[] = JSON.parse(await ask('/api/servers')).items
    const states = new Map(servers.map(({ name, state }) => [name, state]))
    const up = states.get('remote') === 'connected' && states.get('local') === 'connected'
    return up && !['connecting'].includes(states.get('moved') ?? '') ? true : undefined
  })

  let told = 0
  const tools = ['tell', 'tell_error', 'tell_failure', 'tell_structured', 'tell_progress', 'tell_log', 'tell_much']
  for (const server of ['remote', 'local']) {
    for (const tool of tools) {
      const answer = await ask(`/api/tools/${server}_${tool}/call`, { arguments: {} }, agent)
      if (answer.includes('[secret]')) told++
      const params = { name: `${server}_${tool}`, arguments: {}, _meta: { progressToken: 7 } }
      await ask('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, agent)
    }
  }
  expect(told).toBe(2 * tools.length)
  const [pasted = ''] = canaries.values()
  await ask('/api/tools/local_tell/call', { arguments: { pasted, deep: [{ [pasted]: pasted }] } }, agent)
  await ask(`/api/tools/${encodeURIComponent(pasted)}/call`, { arguments: {} }, agent)
  await ask('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: pasted, arguments: {} } }, agent)
  await ask('/mcp', { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: `x://${pasted}` } }, agent)
  await ask('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, agent)
  await ask('/mcp/s/local', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, agent)
  await ask(`/api/servers`, { name: 'bad', definition: { transport: 'http', url: pasted, headers: { [pasted]: '1' } } })
  for (const path of [
    'servers',
    'servers/remote',
    'servers/local',
    'servers/moved',
    'servers/broken',
    'servers/nowhere',
  ])
    await ask(`/api/${path}`)
  for (const path of [
    'servers/local/logs',
    'status',
    'calls?limit=1000',
    'audit?limit=1000',
    'config',
    'config/effective',
  ])
    await ask(`/api/${path}`)
  for (const path of ['secrets', 'tools', 'results', 'openapi.json']) await ask(`/api/${path}`)
  for (const name of ['remote', 'moved', 'broken', 'local']) await ask(`/api/servers/${name}/validate`, {})
  await ask('/api/secrets/rotate-key', {})
  await ask('/api/secrets/STORED_1', { value: '' }, administrator, 'PUT')
  await ask('/api/secrets/BAD-NAME', { value: pasted, extra: pasted }, administrator, 'PUT')
  await ask('/api/tools/local_tell/call', `{"arguments": "${pasted}`, agent)
  const commands = [
    'status',
    'doctor',
    'config show',
    'config check',
    'servers list',
    'servers get local',
    'servers logs local',
  ]
  const more = [
    'servers get moved',
    'tools list',
    'tools guide',
    'tools call remote_tell',
    'audit list',
    'audit verify',
    'audit export',
    'secrets list',
  ]
  for (const command of [...commands, ...more]) {
    await cli(command.split(' '))
    if (/show|export|get local/.test(command)) await cli([...command.split(' '), '--json'])
  }

  await cli(['backup', join(data, 'copy')])
  const calls: { masked?: number; tool: string }[] = JSON.parse(await ask('/api/calls?limit=1000')).items
  expect(calls.find(({ tool }) => tool === 'local_tell')?.masked).toBeGreaterThan(0)

  // The child has what it was given, in its environment and its arguments, and nothing else.
  const pids = await childrenOf(gateway.pid ?? 0)
  const children = await Promise.all(
    pids.map(async (pid) => ({
      cmdline: await readFile(`/proc/${pid}/cmdline`, 'utf8'),
      environ: await readFile(`/proc/${pid}/environ`, 'utf8'),
    })),
  )
  const child = children.find(({ cmdline }) => cmdline.includes('telling-server'))
  const inArguments = named('ARGUMENT_')
  const inEnvironment = [...named('STORED_'), ...variables]
  for (const [name, value] of canaries) {
    expect(child?.cmdline.includes(value), `${name} in the arguments`).toBe(inArguments.includes(name))
    expect(child?.environ.includes(value), `${name} in the environment`).toBe(inEnvironment.includes(name))
  }
  sinks.push({ name: 'command line of the gateway', text: await readFile(`/proc/${gateway.pid}/cmdline`, 'utf8') })

  gateway.kill('SIGTERM')
  await once(gateway, 'exit')
  http.stdin.end()
  sinks.push({ name: 'standard output', text: stdout() }, { name: 'standard error', text: stderr() })
  for (const entry of await readdir(data, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    sinks.push({ name: path.slice(data.length), text: await readFile(path, 'latin1') })
  }
  expect(sweep(sinks, canaries)).toEqual([])
  // The sweep itself sees what it should: a sink that holds one is found.
  expect(sweep([{ name: 'x', text: `a ${Buffer.from(`zz${pasted}`).toString('base64')}` }], canaries)).toHaveLength(1)
})

async function childrenOf(pid: number): Promise<string[]> {
  const tasks = await readdir(`/proc/${pid}/task`)
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')),
  )
  return lists.flatMap((list) => list.trim().split(' ')).filter(Boolean)
}
