import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import { by, configOf, createFolder, pause, startStore } from './support.ts'

const old = 'naming: "{server}_{tool}"\nservers:\n  files: { transport: stdio, command: npx }\n'
const changed =
  'naming: "mcp_{server}_{tool}"\nservers:\n  files: { transport: stdio, command: uvx, args: [files] }\n  other: { transport: http, url: "https://o.example" }\n'
const notes = ServerDefinition.parse({ transport: 'stdio', command: 'uvx' })

describe('the start', () => {
  it('is refused by a broken file, naming file, line and key', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', 'listen:\n  port: many\n')
    await expect(startStore(file)).rejects.toMatchObject({
      code: 'config-invalid',
      message: `${file}:2: listen.port: must be a whole number, not text`,
    })
  })

  it('is refused by a file that is not there', async () => {
    await using folder = await createFolder()
    await expect(startStore(join(folder.path, 'no.yaml'))).rejects.toMatchObject({ code: 'config-unreadable' })
  })
})

describe('a file that is edited while running', () => {
  it('is applied, and says what differs', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using running = await startStore(file)
    await folder.write('sallyport.yaml', changed)
    expect(await running.hear('config-changed')).toEqual({
      changed: ['naming', 'servers.files', 'servers.other'],
      by: 'file',
    })
    expect(running.store.current()).toEqual(configOf(changed))
    expect(running.store.connections().map(({ id }) => id)).toEqual(['files', 'other'])
    expect([...running.store.effective({ kind: 'user', name: 'kim' }).servers.keys()]).toEqual(['files', 'other'])
  })

  it('is noticed when an editor replaces it, again and again', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using running = await startStore(file)
    for (const port of [1001, 1002, 1003]) {
      await rename(await folder.write('.sallyport.yaml.swp', `listen: { port: ${port} }\n`), file)
      await running.hear('config-changed')
      expect(running.store.current().listen.port).toBe(port)
    }
  })

  it('is noticed when an editor moves the old one away first', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using running = await startStore(file)
    await rename(file, `${file}~`)
    await folder.write('sallyport.yaml', changed)
    await running.hear('config-changed')
    expect(running.store.current()).toEqual(configOf(changed))
  })

  it('is noticed behind a link that is turned to another file', async () => {
    await using folder = await createFolder()
    await mkdir(join(folder.path, 'one'))
    await mkdir(join(folder.path, 'two'))
    await folder.write('one/sallyport.yaml', old)
    await folder.write('two/sallyport.yaml', changed)
    const file = join(folder.path, 'sallyport.yaml')
    await symlink('one/sallyport.yaml', file)
    await using running = await startStore(file)
    await symlink('two/sallyport.yaml', `${file}.new`)
    await rename(`${file}.new`, file)
    await running.hear('config-changed')
    expect(running.store.current()).toEqual(configOf(changed))
  })

  it('announces nothing when only comments or dates change', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using running = await startStore(file)
    await folder.write('sallyport.yaml', `# hello\n${old}`)
    await running.store.reload()
    await utimes(file, 1, 1)
    await running.store.reload()
    expect(running.heard).toEqual([])
  })

  it('keeps one view until the next change, shared by agents without settings', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('sallyport.yaml', old))
    const view = running.store.effective({ kind: 'agent', name: 'one' })
    expect(running.store.effective({ kind: 'agent', name: 'two' })).toBe(view)
    await running.store.change({ kind: 'enable-server', name: 'files', enabled: false }, { by })
    expect(running.store.effective({ kind: 'agent', name: 'one' })).not.toBe(view)
  })
})

describe('a broken file while running', () => {
  it('changes nothing, is reported once, and heals with the next good save', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using running = await startStore(file)
    await folder.write('sallyport.yaml', `${old}listn: {}\n`)
    const problem = `${file}:4: listn: is not a known key (did you mean \`listen\`?)`
    expect(await running.hear('config-rejected')).toEqual({ file, problems: [problem] })
    expect(running.store.current()).toEqual(configOf(old))
    expect(running.store.rejected()).toMatchObject([{ line: 4, key: 'listn' }])
    await running.store.reload()
    expect(running.heard).toHaveLength(1)
    await folder.write('sallyport.yaml', changed)
    await running.hear('config-changed')
    expect(running.store.rejected()).toEqual([])
    expect(running.store.current()).toEqual(configOf(changed))
  })

  it('heals when the mistake is taken back', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('sallyport.yaml', old))
    await folder.write('sallyport.yaml', 'oops\n')
    await running.hear('config-rejected')
    await folder.write('sallyport.yaml', old)
    expect(await running.hear('config-changed')).toEqual({ changed: [], by: 'file' })
    expect(running.store.rejected()).toEqual([])
  })

  it('refuses changes from elsewhere, so that nobody loses an edit', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('sallyport.yaml', old))
    await folder.write('sallyport.yaml', 'half an edit\n')
    const change = running.store.change({ kind: 'add-server', name: 'notes', definition: notes }, { by })
    await expect(change).rejects.toMatchObject({ code: 'config-invalid' })
    expect(await folder.read('sallyport.yaml')).toBe('half an edit\n')
  })
})

describe('a file that is deleted while running', () => {
  it('changes nothing, and counts again when it comes back', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using running = await startStore(file)
    await unlink(file)
    await running.hear('config-rejected')
    expect(running.store.current()).toEqual(configOf(old))
    expect(running.store.rejected()[0]?.message).toContain('does not exist')
    await expect(running.store.change({ kind: 'remove-server', name: 'files' }, { by })).rejects.toMatchObject({
      code: 'config-invalid',
    })
    await folder.write('sallyport.yaml', changed)
    await running.hear('config-changed')
    expect(running.store.current()).toEqual(configOf(changed))
  })

  it('changes nothing even when its folder goes with it', async () => {
    await using folder = await createFolder()
    await mkdir(join(folder.path, 'inner'))
    await using running = await startStore(await folder.write('inner/sallyport.yaml', old))
    await rm(join(folder.path, 'inner'), { recursive: true })
    await running.hear('config-rejected')
    expect(running.store.current()).toEqual(configOf(old))
  })
})

describe('a change from elsewhere', () => {
  it('is saved, applied and announced exactly once', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using running = await startStore(file)
    await running.store.change({ kind: 'add-server', name: 'notes', definition: notes }, { by })
    expect(configOf(await folder.read('sallyport.yaml')).servers.notes).toEqual(notes)
    expect(running.store.current().servers.notes).toEqual(notes)
    await pause(400)
    expect(running.heard).toEqual([{ name: 'config-changed', event: { changed: ['servers.notes'], by: 'user:ada' } }])
  })

  it('builds on what somebody wrote into the file a moment before', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('sallyport.yaml', old))
    await folder.write('sallyport.yaml', changed)
    await running.store.change({ kind: 'add-server', name: 'notes', definition: notes }, { by })
    expect(Object.keys(configOf(await folder.read('sallyport.yaml')).servers)).toEqual(['files', 'other', 'notes'])
    expect(running.heard.map(({ event }) => event)).toEqual([
      { changed: ['naming', 'servers.files', 'servers.other'], by: 'file' },
      { changed: ['servers.notes'], by: 'user:ada' },
    ])
  })

  it('loses none of many at the same time', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('sallyport.yaml', old))
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`)
    await Promise.all(
      names.map((name) => running.store.change({ kind: 'add-server', name, definition: notes }, { by })),
    )
    expect(Object.keys(configOf(await folder.read('sallyport.yaml')).servers)).toEqual(['files', ...names])
  })

  it('loses none when two gateways share one file', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await using one = await startStore(file)
    await using two = await startStore(file)
    await one.store.change({ kind: 'add-server', name: 'a', definition: notes }, { by })
    await two.store.change({ kind: 'add-server', name: 'b', definition: notes }, { by })
    await one.store.change({ kind: 'add-server', name: 'c', definition: notes }, { by })
    expect(Object.keys(configOf(await folder.read('sallyport.yaml')).servers)).toEqual(['files', 'a', 'b', 'c'])
  })

  it('keeps the rights of the file, and a link a link', async () => {
    await using folder = await createFolder()
    const real = await folder.write('real.yaml', old)
    await chmod(real, 0o640)
    const file = join(folder.path, 'sallyport.yaml')
    await symlink(real, file)
    await using running = await startStore(file)
    await running.store.change({ kind: 'remove-server', name: 'files' }, { by })
    expect((await stat(real)).mode & 0o777).toBe(0o640)
    expect((await lstat(file)).isSymbolicLink()).toBe(true)
    expect(configOf(await folder.read('real.yaml')).servers).toEqual({})
  })

  it('never writes into the old file itself, so that a reader sees all or nothing', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', old)
    await link(file, join(folder.path, 'kept.yaml'))
    await using running = await startStore(file)
    await running.store.change({ kind: 'remove-server', name: 'files' }, { by })
    expect(await folder.read('kept.yaml')).toBe(old)
  })

  it('leaves no temporary file behind', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write('sallyport.yaml', old))
    await running.store.change({ kind: 'enable-server', name: 'files', enabled: false }, { by })
    expect(await readdir(folder.path)).toEqual(['sallyport.yaml'])
  })
})

describe('a file that is cut off', () => {
  const json = JSON.stringify(
    { naming: 'mcp_{server}_{tool}', servers: { files: { transport: 'stdio', command: 'uvx' } } },
    null,
    2,
  )

  it('at any byte of JSON keeps the old configuration and names the line', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.json', '{}')
    await using running = await startStore(file)
    for (let length = 0; length < json.length; length++) {
      await folder.write('sallyport.json', json.slice(0, length))
      await running.store.reload()
      expect(running.store.current()).toEqual(configOf('{}'))
      expect(running.store.rejected()[0]).toMatchObject({ file, line: expect.any(Number) })
    }
    await folder.write('sallyport.json', json)
    await running.store.reload()
    expect(running.store.current()).toEqual(configOf(json, 'sallyport.json'))
  })

  it.each(['yaml', 'toml'])(
    'within a line of %s keeps the old configuration, even where the rest is valid',
    async (ending) => {
      await using folder = await createFolder()
      const name = `sallyport.${ending}`
      const text =
        ending === 'yaml'
          ? changed
          : '[servers.files]\ntransport = "stdio"\ncommand = "npx"\ntimeout.call = 30000\n\n[servers.other]\ntransport = "http"\nurl = "https://o"\n'
      const file = await folder.write(name, text)
      for (let length = 0; length < text.length; length++) {
        await writeFile(file, text)
        await using running = await startStore(file)
        const whole = running.store.current()
        await truncate(file, length)
        await running.store.reload()
        const rest = text.slice(0, length)
        const withinLine = length === 0 || (!rest.endsWith('\n') && text[length] !== '\n')
        // At the end of a line the rest may be what somebody meant; then it counts as a whole.
        const reading = parseConfig(file, rest)
        expect(running.store.current()).toEqual(withinLine || !reading.ok ? whole : reading.config)
      }
    },
  )

  it('for a moment, at any byte, is never applied by halves', async () => {
    await using folder = await createFolder()
    const offsets = Array.from({ length: changed.length }, (_, length) => length)
    await Promise.all(
      offsets.map(async (length) => {
        const file = await folder.write(`${length}.yaml`, old)
        await using running = await startStore(file)
        await writeFile(file, changed.slice(0, length))
        // Within a line the writer may take longer than the usual quiet.
        await pause(changed[length - 1] === '\n' ? 20 : 300)
        await writeFile(file, changed)
        await running.hear('config-changed')
        await pause(300)
        for (const config of running.inForce) expect(config).toEqual(configOf(changed))
        expect(running.store.current()).toEqual(configOf(changed))
      }),
    )
  })
})

describe('a closed configuration', () => {
  it('hears nothing any more', async () => {
    await using folder = await createFolder()
    const running = await startStore(await folder.write('sallyport.yaml', old))
    await folder.write('sallyport.yaml', changed)
    await running.store.close()
    await pause(300)
    expect(running.heard).toEqual([])
    expect(running.store.current()).toEqual(configOf(old))
  })
})
