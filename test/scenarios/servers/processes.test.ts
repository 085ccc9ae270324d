import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ServerDefinition } from '../../../src/contract/server.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { readProcessStat } from '../../../src/lib/processes.ts'
import { createMasking } from '../../../src/masking/masking.ts'
import { childEnvironment, networkCredentials } from '../../../src/servers/environment.ts'
import { endOrphan, readBootId } from '../../../src/servers/process.ts'
import { fixturePath, stdioFixture } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { readLines } from '../../fixtures/lib/stdio.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { programPath } from '../../support/programs.ts'
import { call, expectGone, inlineServer, isAlive, operator, temporaryFolder } from './support.ts'

/** What this machine itself sets of these is passed on, too. */
const network = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'npm_config_registry', 'npm_config_cafile']
const inherited = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'TERM']

describe('a program started for a server', () => {
  it('gets a minimal environment, what its server names, and the mark of its gateway', async () => {
    process.env.GATEWAY_CANARY = 'must not be seen'
    process.env.SALLYPORT_CANARY = 'must not be seen'
    try {
      await using folder = await temporaryFolder()
      const own = { ...stdioFixture('recording'), cwd: folder.path, env: { OWN: 'yes', LANG: 'own' } }
      await using gateway = await startTestGateway({ servers: { own } })
      const client = await gateway.connectV1('tester')
      const told = toFields(JSON.parse((await call(client, 'own_environment')).text))
      const environment = toFields(told.env)
      const strangers = Object.keys(environment).filter(
        (name) => ![...inherited, ...network, 'OWN', 'SALLYPORT_INSTANCE'].includes(name),
      )
      expect(strangers).toEqual([])
      expect(environment).toMatchObject({ OWN: 'yes', LANG: 'own', SALLYPORT_INSTANCE: gateway.gateway.instance })
      expect(JSON.stringify(told)).not.toContain('must not be seen')
      expect(told.cwd).toBe(folder.path)
    } finally {
      delete process.env.GATEWAY_CANARY
      delete process.env.SALLYPORT_CANARY
    }
  })

  it('cannot be given the mark of another gateway', () => {
    const own = { SALLYPORT_INSTANCE: 'forged' }
    const environment = childEnvironment({ own, instance: 'mine', trusted: true }, { PATH: '/bin', SECRET: 'x' })
    expect(environment).toEqual({ PATH: '/bin', SALLYPORT_INSTANCE: 'mine' })
  })

  it('gets the proxy, certificate and registry variables of the gateway, and no others', () => {
    const given = {
      HTTP_PROXY: 'http://proxy.example.com:3128',
      HTTPS_PROXY: 'http://proxy.example.com:3128',
      NO_PROXY: 'localhost,.example.com',
      http_proxy: 'http://proxy.example.com:3128',
      https_proxy: 'http://proxy.example.com:3128',
      no_proxy: 'localhost,.example.com',
      NODE_EXTRA_CA_CERTS: '/etc/ssl/company.pem',
      SSL_CERT_FILE: '/etc/ssl/company.pem',
      SSL_CERT_DIR: '/etc/ssl/certs',
      npm_config_registry: 'https://npm.example.com/',
      npm_config_cafile: '/etc/ssl/company.pem',
    }
    const others = {
      NPM_TOKEN: 'x',
      npm_config__auth: 'x',
      NPM_CONFIG_REGISTRY: 'x',
      npm_config_userconfig: 'x',
      ALL_PROXY: 'x',
      all_proxy: 'x',
      NODE_OPTIONS: 'x',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
      CURL_CA_BUNDLE: 'x',
      SALLYPORT_KEY: 'x',
    }
    const environment = childEnvironment({ own: {}, instance: 'mine', trusted: false }, { ...given, ...others })
    expect(environment).toEqual({ ...given, SALLYPORT_INSTANCE: 'mine' })
  })

  it.each([
    'http://user:secret-word@proxy.example.com:3128',
    'user:secret-word@proxy.example.com:3128',
    'http://token@proxy.example.com',
    'http://user:secret-word@proxy.example.com:3128/path?query#part',
  ])('gets %s only where administrators wrote the command, and its user part is masked', (HTTPS_PROXY) => {
    const from = { HTTPS_PROXY, no_proxy: 'localhost' }
    const untrusted = childEnvironment({ own: {}, instance: 'mine', trusted: false }, from)
    expect(untrusted).toEqual({ no_proxy: 'localhost', SALLYPORT_INSTANCE: 'mine' })
    expect(childEnvironment({ own: {}, instance: 'mine', trusted: true }, from)).toMatchObject({ HTTPS_PROXY })
    const userPart = HTTPS_PROXY.includes('token') ? 'token' : 'user:secret-word'
    expect(networkCredentials(from)).toContain(userPart)
  })

  it.each([
    ['http://jane:pass,word%21@proxy.example.com:3128', ['pass,word%21', 'pass,word!']],
    ['http://jane:pass/word@proxy.example.com:3128', ['pass/word']],
    ['http://jane:pass word@proxy.example.com', ['pass word']],
    ['http://jane:pass@word@proxy.example.com', ['pass@word']],
  ])('has the whole password of %s masked, whatever characters it has', (HTTPS_PROXY, passwords) => {
    const masking = createMasking()
    for (const value of networkCredentials({ HTTPS_PROXY })) masking.hide(value)
    expect(masking.text(`connecting to ${HTTPS_PROXY}`)).toMatch(
      /^connecting to http:\/\/\[secret\]@proxy\.example\.com/,
    )
    for (const password of passwords)
      expect(masking.text(`the password is ${password}`)).toBe('the password is [secret]')
    const untrusted = childEnvironment({ own: {}, instance: 'mine', trusted: false }, { HTTPS_PROXY })
    expect(untrusted).toEqual({ SALLYPORT_INSTANCE: 'mine' })
  })

  it('runs in a folder of its own in the data folder, unless its entry names another', async () => {
    await using folder = await temporaryFolder()
    await using gateway = await startTestGateway({
      servers: { one: stdioFixture('recording'), two: { ...stdioFixture('recording'), cwd: folder.path } },
    })
    const client = await gateway.connectV1('tester')
    const cwdOf = async (server: string) => toFields(JSON.parse((await call(client, `${server}_environment`)).text)).cwd
    expect(await cwdOf('one')).toBe(join(gateway.folder, 'data', 'servers', 'one'))
    expect(await cwdOf('two')).toBe(folder.path)
  })

  it('finds its folder empty when its server was removed and added again, and the old files are kept', async () => {
    const own = stdioFixture('recording')
    await using gateway = await startTestGateway({ servers: { own } })
    const folder = join(gateway.folder, 'data', 'servers', 'own')
    await writeFile(join(folder, 'left.txt'), 'from before')
    await gateway.gateway.servers.remove(operator, 'own')
    await gateway.gateway.servers.add(operator, { name: 'own', definition: ServerDefinition.parse(own) })
    expect(await readdir(folder)).toEqual([])
    const [kept = ''] = await readdir(join(gateway.folder, 'data', 'servers', '.removed'))
    expect(await readFile(join(gateway.folder, 'data', 'servers', '.removed', kept, 'left.txt'), 'utf8')).toBe(
      'from before',
    )
  })

  it.each(['npx', 'other'])('has as long to start when it is only tried as when it is added (%s)', async (name) => {
    await using folder = await temporaryFolder()
    const command = join(folder.path, name)
    const script = `#!/bin/sh\nsleep 1.5\nexec ${process.execPath} ${fixturePath('recording')}\n`
    await writeFile(command, script, { mode: 0o755 })
    // Only what may have to download first has the time of `start`.
    const timeout = { connect: 500, start: 30_000 }
    const definition = ServerDefinition.parse({ transport: 'stdio', command, timeout })
    await using gateway = await startTestGateway({ servers: {} })
    const tried = await gateway.gateway.servers.validate(operator, { definition }, new AbortController().signal)
    const added = await gateway.gateway.servers.add(operator, { name: 'own', definition })
    expect([tried.ok, added.state === 'connected']).toEqual(name === 'npx' ? [true, true] : [false, false])
    expect(tried.failure?.class).toBe(added.error?.class)
  })

  it('that is only tried leaves no folder behind', async () => {
    await using gateway = await startTestGateway({ servers: {} })
    const definition = ServerDefinition.parse(stdioFixture('recording'))
    const { ok } = await gateway.gateway.servers.validate(operator, { definition }, new AbortController().signal)
    expect(ok).toBe(true)
    expect(await readdir(join(gateway.folder, 'data', 'servers'))).toEqual([])
  })

  it('inherits none of the gateway’s open files', async () => {
    const files = inlineServer(`
      const { readdirSync, readlinkSync } = require('node:fs')
      const look = (fd) => { try { return readlinkSync('/proc/self/fd/' + fd) } catch { return 'gone' } }
      function handle({ id, method }) {
        if (method === 'initialize') say({ id, result: greeting })
        else if (method === 'tools/list') say({ id, result: { tools: [tool('files')] } })
        else if (id) say({ id, result: text(JSON.stringify(readdirSync('/proc/self/fd').map(look))) })
      }
    `)
    await using gateway = await startTestGateway({ servers: { files } })
    const client = await gateway.connectV1('tester')
    const open: string[] = JSON.parse((await call(client, 'files_files')).text)
    expect(open.length).toBeGreaterThan(2)
    expect(open.filter((target) => target.includes(gateway.folder) || target.includes('.sqlite'))).toEqual([])
  })

  it('leads a process group of its own, which ends with the gateway', async () => {
    const gateway = await startTestGateway({
      servers: { one: stdioFixture('recording'), two: stdioFixture('recording') },
    })
    const pids = await markedWith(gateway.gateway.instance)
    expect(pids).toHaveLength(2)
    for (const pid of pids) expect((await readProcessStat(pid))?.group).toBe(pid)
    await gateway.close()
    await expectGone(...pids)
  })

  it('ends when its server is removed or replaced, and no other does', async () => {
    await using gateway = await startTestGateway({
      servers: { first: stdioFixture('recording'), second: stdioFixture('recording') },
    })
    const before = await markedWith(gateway.gateway.instance)
    await gateway.gateway.servers.remove(operator, 'first')
    const [kept = 0, ...others] = await poll(async () => {
      const left = await markedWith(gateway.gateway.instance)
      return left.length === 1 ? left : undefined
    })
    expect(others).toEqual([])
    expect(before).toContain(kept)
    await gateway.writeConfig({ servers: { second: { ...stdioFixture('recording'), env: { CHANGED: 'yes' } } } })
    await expectGone(kept)
    await gateway.reach('second', 'connected')
    expect(await markedWith(gateway.gateway.instance)).toHaveLength(1)
  })
})

describe('a gateway that was killed with -9', () => {
  it('has what it left behind ended by the next start, and nothing that merely looks like it', async () => {
    await using folder = await temporaryFolder()
    const config = {
      servers: {
        leader: stdioFixture('hostile', ['exit-on-stdin-close-ignored']),
        family: stdioFixture('hostile', ['grandchildren']),
      },
    }
    await writeFile(join(folder.path, 'sallyport.json'), JSON.stringify({ listen: { port: 0 }, ...config }))
    const { child, instance } = await startProcess(folder.path)
    const started = await poll(async () => {
      const found = await markedWith(instance)
      return found.length === 3 ? found : undefined
    })
    const lookalikes = [undefined, 'inst_of_somebody_else'].map(startLookalike)
    try {
      child.kill('SIGKILL')
      await once(child, 'exit')
      const left = await poll(async () => {
        const found = await markedWith(instance)
        return found.length < started.length ? found : undefined
      })
      // The grandchild whose parent is gone, and the one that ignores the end of its input if it had got that far.
      expect(left.length).toBeGreaterThanOrEqual(1)
      await using gateway = await startTestGateway({ servers: {} }, { folder: folder.path })
      await expectGone(...started)
      expect(gateway.gateway.instance).not.toBe(instance)
      for (const { pid = 0 } of lookalikes) expect(await isAlive(pid)).toBe(true)
    } finally {
      for (const lookalike of lookalikes) lookalike.kill('SIGKILL')
      child.kill('SIGKILL')
    }
  })

  it('has a child ended too that it had started, but not recorded yet', async () => {
    await using folder = await temporaryFolder()
    await writeFile(join(folder.path, 'sallyport.json'), JSON.stringify({ listen: { port: 0 }, servers: {} }))
    const { child, instance } = await startProcess(folder.path)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const [unrecorded, foreign] = [instance, 'instance_of_another_folder'].map(startLookalike)
    try {
      await using gateway = await startTestGateway({ servers: {} }, { folder: folder.path })
      expect(gateway.gateway.instance).not.toBe(instance)
      await expectGone(unrecorded?.pid ?? 0)
      expect(await isAlive(foreign?.pid ?? 0)).toBe(true)
    } finally {
      for (const started of [unrecorded, foreign]) started?.kill('SIGKILL')
    }
  })

  it('has a process ended only if boot, start time and mark all agree', async () => {
    const bootId = await readBootId()
    const marked = startLookalike('inst_dead')
    try {
      await poll(async () => ((await markedWith('inst_dead')).includes(marked.pid ?? 0) ? true : undefined))
      const pid = marked.pid ?? 0
      const startTime = (await readProcessStat(pid))?.startTime ?? ''
      const right = { pid, bootId, startTime, instance: 'inst_dead' }
      for (const wrong of [
        { ...right, bootId: 'another-boot' },
        { ...right, startTime: String(Number(startTime) - 1) },
        { ...right, instance: 'inst_other' },
        { ...right, instance: 'inst_dea' },
        { ...right, instance: '' },
        { ...right, pid: process.pid },
      ]) {
        expect(await endOrphan(wrong, systemClock)).toBe(false)
        expect(await isAlive(pid)).toBe(true)
      }
      expect(await endOrphan(right, systemClock)).toBe(true)
      await expectGone(pid)
      expect(await endOrphan(right, systemClock)).toBe(false)
    } finally {
      marked.kill('SIGKILL')
    }
  })
})

/** The same program as a server's, started by somebody else. */
function startLookalike(instance: string | undefined): ChildProcess {
  const { SALLYPORT_INSTANCE: _own, ...environment } = process.env
  return spawn(process.execPath, [fixturePath('hostile'), 'exit-on-stdin-close-ignored'], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore'],
    env: { ...environment, ...(instance && { SALLYPORT_INSTANCE: instance }) },
  })
}

async function startProcess(folder: string): Promise<{ child: ChildProcess; instance: string }> {
  const program = programPath('test/scenarios/servers/gateway-process')
  const child = spawn(process.execPath, [program, join(folder, 'sallyport.json'), join(folder, 'data')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  readLines(child.stdout, (line) => {
    if (line.startsWith('connected ')) resolve(line.slice('connected '.length))
  })
  child.on('exit', () => reject(new Error('The gateway ended')))
  return { child, instance: await promise }
}

/** Living processes whose environment has an instance's mark. */
async function markedWith(instance: string): Promise<number[]> {
  const found: number[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const environment = await readFile(`/proc/${entry}/environ`, 'utf8').catch(() => '')
    if (!environment.split('\0').includes(`SALLYPORT_INSTANCE=${instance}`)) continue
    if (await isAlive(Number(entry))) found.push(Number(entry))
  }
  return found
}
