import { chmod, chown, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readEnvFile } from '../../../src/config/config.ts'
import { runCli, until } from '../../cli/support.ts'
import { type HttpFixture, startHttpFixture } from '../../fixtures/fixtures.ts'
import { startTestGateway } from '../../support/gateway.ts'

const token = 'tok-0123456789abcdef'
let server: HttpFixture
let folder: string

beforeAll(async () => {
  server = await startHttpFixture('recording', ['--http', '--require-token', token])
  folder = await mkdtemp(join(tmpdir(), 'sallyport-env-'))
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

let files = 0
async function write(text: string, mode = 0o600): Promise<string> {
  const path = join(folder, `${files++}.env`)
  await writeFile(path, text)
  await chmod(path, mode)
  return path
}

/** Replaces the file in one step, as editors do. */
async function replace(path: string, text: string): Promise<void> {
  await rename(await write(text), path)
}

function configOf(envFile: string | undefined, header = 'Bearer ${DOCS}') {
  const docs = { transport: 'http' as const, url: server.url, headers: { Authorization: header } }
  return { ...(envFile !== undefined && { envFile }), servers: { docs } }
}

describe('the envFile', () => {
  it('gives its variables to servers without a list, and connects them again when they change', async () => {
    const path = await write('DOCS=wrong-0123456789\nOTHER=1\n')
    await using gateway = await startTestGateway(configOf(path))
    await gateway.reach('docs', 'auth-required')
    await replace(path, `DOCS="${token}"\nOTHER=1\n`)
    await gateway.reach('docs', 'connected')
    const entries = await gateway.gateway.audit.list({ limit: 100 })
    const recorded = entries.items.find(({ body }) => JSON.stringify(body).includes('"variables"'))
    expect(recorded).toMatchObject({ principal: 'file', body: { names: ['DOCS'] } })
    expect(JSON.stringify(entries)).not.toContain(token)
    expect(gateway.gateway.masking.text(`the token is ${token}`)).toBe('the token is [secret]')
  })

  it('gives way to a variable of the process, and to a secret', async () => {
    const path = await write('DOCS=wrong-0123456789\n')
    await using gateway = await startTestGateway(configOf(path), { environment: { DOCS: token } })
    await gateway.reach('docs', 'connected')
  })

  it('never gives a variable of the gateway', async () => {
    const path = await write('SALLYPORT_X=abcdefgh12345\nsallyport_y=abcdefgh12345\nZ=1\n')
    expect([...readEnvFile(path).keys()]).toEqual(['Z'])
    await using gateway = await startTestGateway(configOf(path, 'Bearer ${SALLYPORT_X}'))
    expect((await gateway.reach('docs', 'failed')).error).toMatchObject({ code: 'variable-missing' })
  })

  it('stays in use in its earlier version when the new one has a mistake, and says so', async () => {
    const path = await write(`DOCS=${token}\n`)
    await using gateway = await startTestGateway(configOf(path))
    await gateway.reach('docs', 'connected')
    await replace(path, 'hunter2 hunter2\n')
    const notices = await until(() => {
      const { notices } = gateway.gateway.status().config
      return notices.length > 0 ? notices : undefined
    })
    expect(notices).toEqual([expect.stringMatching(`${path}:1: is not NAME=value.*earlier values`)])
    expect(gateway.gateway.servers.list()).toMatchObject([{ state: 'connected' }])
    await replace(path, `DOCS=${token}\nMORE=1\n`)
    await until(() => (gateway.gateway.status().config.notices.length === 0 ? true : undefined))
  })

  it('that cannot be used refuses the start, and refuses an edit of the configuration', async () => {
    const path = await write(`DOCS=${token}\n`, 0o666)
    await expect(startTestGateway(configOf(path))).rejects.toMatchObject({ code: 'data-unsafe' })
    await using gateway = await startTestGateway(configOf(undefined))
    await gateway.writeConfig(configOf(path))
    await gateway.gateway.config.reload()
    expect(gateway.gateway.config.rejected()).toMatchObject([{ key: 'envFile', line: expect.any(Number) }])
    expect(gateway.gateway.config.current().envFile).toBeUndefined()
  })

  it('is applied, changed and removed by an edit of the configuration', async () => {
    const path = await write(`DOCS=${token}\n`)
    await using gateway = await startTestGateway(configOf(undefined))
    await gateway.reach('docs', 'failed')
    await gateway.writeConfig(configOf(path))
    await gateway.reach('docs', 'connected')
    await gateway.writeConfig(configOf(undefined))
    await gateway.reach('docs', 'failed')
  })

  it.each<[why: string, make: () => Promise<string>, message: RegExp]>([
    ['writable by its group', () => write('A=1', 0o620), /Other users can write to .*chmod go-w/],
    ['writable by everyone', () => write('A=1', 0o602), /Other users can write to/],
    [
      'a link into a folder that everyone can write',
      async () => {
        const open = await mkdtemp(join(folder, 'open-'))
        await writeFile(join(open, 'target'), 'A=1')
        await chmod(open, 0o777)
        const link = join(folder, `${files++}.env`)
        await symlink(join(open, 'target'), link)
        return link
      },
      /Other users can write to .*replace the files in it/,
    ],
    [
      'a folder',
      async () => {
        const path = join(folder, `${files++}.env`)
        await mkdir(path)
        return path
      },
      /not a regular file/,
    ],
    ['too large', () => write(`A=${'x'.repeat(65_536)}`), /larger than 64 KiB/],
    ['missing', async () => join(folder, 'nowhere.env'), /nowhere.env does not exist/],
    [
      'of another user',
      async () => {
        // Only root can give a file away; other users have no file of another user in a folder of their own.
        if (process.getuid?.() !== 0) return '/etc/hosts'
        const path = await write('A=1')
        await chown(path, 1234, 1234)
        return path
      },
      /belongs to another user/,
    ],
  ])('is refused when it is %s', async (_, make, message) => {
    const path = await make()
    expect(() => readEnvFile(path)).toThrow(message)
  })

  it('may be a link to a file that only this user can change', async () => {
    const link = join(folder, `${files++}.env`)
    await symlink(await write('A=1'), link)
    expect([...readEnvFile(link)]).toEqual([['A', '1']])
  })
})

describe('a .env beside the configuration that is not the envFile', () => {
  it('is mentioned where a variable is missing, and not read', async () => {
    await using gateway = await startTestGateway(configOf(undefined), { wait: false })
    await writeFile(join(gateway.folder, '.env'), `DOCS=${token}\n`, { mode: 0o600 })
    await gateway.writeConfig({ ...configOf(undefined), environment: ['X'] })
    const message = await until(() => {
      const [found] = gateway.gateway.servers.list()
      return found?.error?.message.includes('.env') ? found.error.message : undefined
    })
    expect(message).toContain(`${join(gateway.folder, '.env')} is not read: to use it, set \`envFile: .env\``)
  })

  it('is in use after `envFile: .env`, and doctor finds its variables', async () => {
    const place = await mkdtemp(join(folder, 'doctor-'))
    await writeFile(join(place, '.env'), `DOCS=${token}\n`, { mode: 0o600 })
    await writeFile(join(place, 'sallyport.json'), JSON.stringify(configOf('.env')))
    const found = await runCli(['doctor', '--json', '--port', '0'], { cwd: place })
    expect(found.stdout).toContain('.env has 1 variable')
    expect(found.stdout).not.toContain('is not set')
    expect(found.stdout).not.toContain(token)
  })
})
