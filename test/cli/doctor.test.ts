import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkStates } from '../../src/cli/commands/doctor/gateway.ts'
import { checkNode } from '../../src/cli/commands/doctor/machine.ts'
import { createFolder, findFreePort, recording, runCli, serve, takePort, writeConfig } from './support.ts'

type Finding = { check: string; status: string; message: string; fix: string | null }

/** Runs `doctor` on a set-up that has no gateway, and tells the problems it found. */
async function examine(config: object | string, env: NodeJS.ProcessEnv = {}) {
  await using folder = await createFolder()
  const text = typeof config === 'string' ? config : undefined
  const file = await writeConfig(folder.path, typeof config === 'string' ? {} : config)
  if (text !== undefined) await writeFile(file, text)
  const ended = await runCli(['doctor', '--json'], { cwd: folder.path, env })
  const people = await runCli(['doctor'], { cwd: folder.path, env })
  const findings = toFindings(ended.json())
  return { code: ended.code, people, file, findings, problems: findings.filter((each) => each.status === 'problem') }
}

function toFindings(document: { findings?: unknown }): Finding[] {
  return Array.isArray(document.findings) ? document.findings : []
}

describe('doctor names the cause and what mends it', () => {
  it('when the port is taken', async () => {
    await using taken = await takePort()
    const { code, problems, people } = await examine({ listen: { port: taken.port } })
    expect(code).toBe(1)
    expect(problems).toEqual([
      {
        check: 'port',
        status: 'problem',
        message: `Port ${taken.port} on 127.0.0.1 is used by another program`,
        fix: expect.stringContaining(`sallyport serve --port ${taken.port + 1}`),
      },
    ])
    expect(people.code).toBe(1)
    expect(people.stdout).toContain(`fix: sallyport serve --port ${taken.port + 1}`)
  })

  it('when a command is missing', async () => {
    const port = await findFreePort()
    const { code, problems, file } = await examine({
      listen: { port },
      servers: { tool: { transport: 'stdio', command: 'no-such-program' } },
    })
    expect(code).toBe(1)
    expect(problems).toEqual([
      {
        check: 'server tool',
        status: 'problem',
        message: 'The command no-such-program of tool was not found',
        fix: `Install it, or correct servers.tool.command in ${file}`,
      },
    ])
  })

  it('when a member’s server wants a variable of the gateway, and does not try where members’ servers lead', async () => {
    const [port, elsewhere] = [await findFreePort(), await findFreePort()]
    const own = { transport: 'http', url: `http://127.0.0.1:${elsewhere}/` }
    const servers = { own, wants: { ...own, headers: { a: '${DOCTOR_TOKEN}' } } }
    const { problems, findings } = await examine(
      {
        listen: { port },
        environment: ['DOCTOR_TOKEN'],
        users: { anna: { servers } },
        servers: { tool: { transport: 'stdio', command: 'npx', args: ['-y', 'some-server'] } },
      },
      { DOCTOR_TOKEN: 'x' },
    )
    expect(problems).toEqual([
      {
        check: 'server wants@user:anna',
        status: 'problem',
        message:
          'wants needs ${DOCTOR_TOKEN}: only entries of administrators may use environment variables of the gateway',
        fix: 'sallyport secrets set DOCTOR_TOKEN --scope user:anna',
      },
    ])
    expect(findings.find(({ check }) => check === 'server own@user:anna')?.message).toContain('only the gateway')
    expect(findings.find(({ status }) => status === 'note')?.message).toContain(
      'latest published version of some-server',
    )
  })

  it('when a variable is not set', async () => {
    const port = await findFreePort()
    const headers = { Authorization: 'Bearer ${DOCTOR_TOKEN}' }
    const servers = { docs: { transport: 'http', url: 'https://example.com/mcp', headers } }
    const { code, problems } = await examine({ listen: { port }, environment: ['DOCTOR_TOKEN'], servers })
    expect(code).toBe(1)
    expect(problems).toEqual([
      {
        check: 'server docs',
        status: 'problem',
        message: 'docs needs ${DOCTOR_TOKEN}: DOCTOR_TOKEN is not set',
        fix: 'export DOCTOR_TOKEN=… before sallyport serve',
      },
    ])
  })

  it('when a variable is set but not listed', async () => {
    const port = await findFreePort()
    const servers = { tool: { ...recording(), env: { KEY: '${DOCTOR_TOKEN}' } } }
    const { problems, file } = await examine({ listen: { port }, servers }, { DOCTOR_TOKEN: 'x' })
    expect(problems).toMatchObject([
      {
        message: 'tool needs ${DOCTOR_TOKEN}: DOCTOR_TOKEN is not listed under `environment`',
        fix: `add to ${file}: environment: [DOCTOR_TOKEN]`,
      },
    ])
  })

  it('when an address is unreachable', async () => {
    const port = await findFreePort()
    const dead = await findFreePort()
    const servers = { docs: { transport: 'http', url: `http://127.0.0.1:${dead}/mcp` } }
    const { code, problems } = await examine({ listen: { port }, servers })
    expect(code).toBe(1)
    expect(problems).toEqual([
      {
        check: 'server docs',
        status: 'problem',
        message: `127.0.0.1:${dead} of docs is unreachable: connection refused`,
        fix: expect.stringContaining('sallyport servers reconnect docs'),
      },
    ])
  })

  it('when the file is invalid, with its line and key', async () => {
    const { code, problems, file } = await examine(`listen:\n  prt: 4777\nservers: {}\n`)
    expect(code).toBe(1)
    expect(problems.find((each) => each.check === 'configuration')).toMatchObject({
      message: expect.stringMatching(/sallyport\.yaml:2: listen\.prt: .*did you mean `port`/),
      fix: `Correct ${file}:2, then: sallyport config check ${file}`,
    })
  })

  it('when the data folder is open to everybody', async () => {
    await using folder = await createFolder()
    await writeConfig(folder.path, { listen: { port: await findFreePort() } })
    const data = join(folder.path, '.sallyport')
    await mkdir(data)
    await chmod(data, 0o755)
    const ended = await runCli(['doctor', '--json'], { cwd: folder.path })
    expect(ended.code).toBe(0)
    expect(toFindings(ended.json())).toContainEqual({
      check: 'data folder',
      status: 'warning',
      message: `${data} is accessible to every user of this machine`,
      fix: `chmod 700 ${data}`,
    })
  })

  it('when the key of the secrets can be read by others', async () => {
    await using folder = await createFolder()
    await writeConfig(folder.path, { listen: { port: await findFreePort() } })
    const key = join(folder.path, '.sallyport', 'key')
    await mkdir(join(folder.path, '.sallyport'), { mode: 0o700 })
    await writeFile(key, '')
    await chmod(key, 0o644)
    const ended = await runCli(['doctor', '--json'], { cwd: folder.path })
    expect(toFindings(ended.json())).toContainEqual(
      expect.objectContaining({ status: 'warning', fix: `chmod 600 ${key}` }),
    )
  })

  it('when a server keeps failing, also in the moment in which it is tried again', () => {
    const server = { name: 'bad', scope: 'global', tools: 0, error: 'The program ended with code 1', output: ['why'] }
    const [failed, retried, begun] = [
      { ...server, state: 'failed' as const },
      { ...server, state: 'connecting' as const },
      { name: 'new', scope: 'global', tools: 0, state: 'connecting' as const },
    ].map((each) => checkStates([each], new Set()))
    expect(failed).toEqual([
      {
        check: 'server bad',
        status: 'problem',
        message: 'bad is not connected: The program ended with code 1\n  | why',
        fix: 'sallyport servers validate bad; then: sallyport servers reconnect bad',
      },
    ])
    expect(retried).toEqual(failed)
    expect(begun).toMatchObject([{ status: 'warning', message: 'new is connecting' }])
  })

  it('when Node is too old', () => {
    expect(checkNode('22.18.1')).toMatchObject({ status: 'problem', fix: expect.stringContaining('nodejs.org') })
    expect(checkNode('22.19.0')).toMatchObject({ status: 'ok' })
    expect(checkNode('24.0.0')).toMatchObject({ status: 'ok' })
  })
})

describe('doctor on a set-up in order', () => {
  it('ends with 0 and says that commands run with the rights of the gateway', async () => {
    const { code, findings, people } = await examine({
      listen: { port: await findFreePort() },
      servers: { tool: recording(), off: { transport: 'stdio', command: 'no-such-program', enabled: false } },
    })
    expect(code).toBe(0)
    expect(findings.find((each) => each.check === 'rights')).toMatchObject({
      status: 'note',
      message: expect.stringContaining('Commands run with the rights of the gateway and can read its files: '),
    })
    expect(people.stdout).toContain('No problems.')
  })

  it('knows the running gateway, its port and the states of its servers', async () => {
    const dead = await findFreePort()
    await using gateway = await serve({
      servers: { good: recording(), bad: { transport: 'http', url: `http://127.0.0.1:${dead}/mcp` } },
    })
    await gateway.run('servers', 'reconnect', 'good')
    const ended = await gateway.run('doctor', '--port', new URL(gateway.url).port, '--json')
    const findings = toFindings(ended.json())
    expect(findings).toContainEqual(expect.objectContaining({ check: 'gateway', status: 'ok' }))
    expect(findings).toContainEqual(expect.objectContaining({ check: 'port', status: 'ok' }))
    expect(findings).toContainEqual(expect.objectContaining({ check: 'lock', status: 'ok' }))
    expect(findings).toContainEqual(expect.objectContaining({ check: 'server good', status: 'ok' }))
    expect(findings).toContainEqual(
      expect.objectContaining({
        check: 'people',
        status: 'warning',
        message: expect.stringContaining('No administrator'),
      }),
    )
    expect(findings.filter((each) => each.status === 'problem').map((each) => each.check)).toEqual(['server bad'])
    expect(ended.code).toBe(1)
  })
})
