import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findEditor, splitCommand } from '../../src/cli/terminal/editor.ts'
import { createFolder, type Fields, type Folder, recording, runCli, type Served, serveHere, until } from './support.ts'

let gateway: Served
let folder: Folder

beforeAll(async () => {
  folder = await createFolder()
  gateway = await serveHere({
    servers: { rec: { ...recording(), env: { TOKEN: '${TOKEN:-none}' } } },
    agents: { reviewer: { servers: { rec: { description: 'for reviews' } } } },
  })
  await gateway.run('servers', 'reconnect', 'rec')
  return () => folder[Symbol.asyncDispose]()
})

afterAll(() => gateway?.[Symbol.asyncDispose]())

/** An editor that runs one step of a script at each start, and keeps what it was given. */
async function editor(...steps: string[]) {
  const script = join(folder.path, `editor-${Math.random().toString(36).slice(2)}.cjs`)
  const seen = `${script}.seen`
  await writeFile(seen, '[]')
  await writeFile(
    script,
    `const { readFileSync, statSync, writeFileSync } = require('node:fs')
     const file = process.argv.at(-1)
     const seen = JSON.parse(readFileSync(${JSON.stringify(seen)}, 'utf8'))
     let text = readFileSync(file, 'utf8')
     seen.push({ text, file, mode: statSync(file).mode & 0o777, words: process.argv.slice(2, -1) })
     writeFileSync(${JSON.stringify(seen)}, JSON.stringify(seen))
     const steps = [${steps.map((step) => `() => { ${step} }`).join(', ')}]
     steps[Math.min(seen.length, steps.length) - 1]()
     writeFileSync(file, text)`,
  )
  const run = (...words: string[]) =>
    runCli([...words, '--data', gateway.data], {
      cwd: gateway.folder,
      env: { VISUAL: `"${process.execPath}" '${script}' --a "b c"`, TMPDIR: folder.path },
    })
  const looked = async (): Promise<Fields[]> => JSON.parse(await readFile(seen, 'utf8'))
  return { run, looked }
}

const drafts = async () => (await readdir(folder.path)).filter((name) => name.startsWith('sallyport-'))

describe('servers edit', () => {
  it('opens what the entry says itself, shows the change, and saves it', async () => {
    const { run, looked } = await editor(`text += 'description: edited\\n'`)
    const ended = await run('servers', 'edit', 'rec')
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^rec: connected/) })
    expect(ended.stderr).toContain('  + description: edited')
    const [first] = await looked()
    expect(first).toMatchObject({ mode: 0o600, words: ['--a', 'b c'] })
    expect(String(first?.text)).toMatch(
      /^transport: stdio\ncommand: .*\nargs:\n {2}- .*\nenv:\n {2}TOKEN: \$\{TOKEN:-none\}\n$/,
    )
    expect((await gateway.run('servers', 'get', 'rec', '--json')).json()).toMatchObject({ description: 'edited' })
    expect(await readFile(join(gateway.folder, 'sallyport.yaml'), 'utf8')).toContain('description: edited')
    expect(await drafts()).toEqual([])
  })

  it('does nothing when nothing was changed', async () => {
    const before = await stat(join(gateway.folder, 'sallyport.yaml'))
    const { run } = await editor('')
    expect(await run('servers', 'edit', 'rec')).toMatchObject({ code: 0, stdout: '', stderr: 'Nothing was changed.\n' })
    expect((await stat(join(gateway.folder, 'sallyport.yaml'))).mtimeMs).toBe(before.mtimeMs)
  })

  it('opens the editor again after a mistake, with the reason on top and nothing lost', async () => {
    const { run, looked } = await editor(
      `text += 'defaultRisk: huge\\n'`,
      `text = text.replace('defaultRisk: huge', 'defaultRisk: danger')`,
    )
    expect(await run('servers', 'edit', 'rec')).toMatchObject({ code: 0 })
    const [, second] = await looked()
    expect(String(second?.text)).toMatch(/^#! defaultRisk: must be read, write or danger\n#! Correct the text/)
    expect(String(second?.text)).toContain('defaultRisk: huge')
    const { definition } = (await gateway.run('servers', 'get', 'rec', '--json')).json()
    expect(definition).toMatchObject({ defaultRisk: 'danger' })
    expect(JSON.stringify(definition)).not.toContain('#!')
  })

  it('keeps what was typed, and says where, when it cannot be saved', async () => {
    const { run, looked } = await editor(`text += ': : :\\n'`, '')
    const ended = await run('servers', 'edit', 'rec')
    expect(ended).toMatchObject({ code: 2 })
    const [first] = await looked()
    expect(ended.stderr).toContain(`Your text is in ${first?.file}`)
    expect(await readFile(String(first?.file), 'utf8')).toContain(': : :')
  })

  it('notices that somebody else changed the entry', async () => {
    const change = `require('node:child_process').execFileSync(process.execPath, ${JSON.stringify([
      'BIN',
      'servers',
      'disable',
      'rec',
      '--data',
      'DATA',
    ])})`
    const bin = join(import.meta.dirname, '../../bin/sallyport.js')
    const { run } = await editor(
      `${change.replace('BIN', bin).replace('DATA', gateway.data)}; text += 'trust: none\\n'`,
    )
    const ended = await run('servers', 'edit', 'rec', '--json')
    expect(ended).toMatchObject({ code: 1 })
    expect(ended.json()).toMatchObject({ error: { code: 'config-conflict' } })
    expect(await gateway.run('servers', 'enable', 'rec')).toMatchObject({ code: 0 })
  })

  it('opens only what a later scope changes', async () => {
    const { run, looked } = await editor('')
    await run('servers', 'edit', 'rec', '--scope', 'agent:reviewer')
    expect(await looked()).toMatchObject([{ text: 'description: for reviews\n' }])
  })
})

describe('config edit', () => {
  it('checks the file before it saves it, and the running gateway applies it', async () => {
    const { run, looked } = await editor(
      `text = text.replace(/^servers:/m, 'toolsets: { small: { tools: 5 } }\\nservers:')`,
      `text = text.replace('tools: 5', 'tools: [rec_echo]')`,
    )
    const ended = await run('config', 'edit')
    expect(ended).toMatchObject({ code: 0, stdout: `Saved ${join(gateway.folder, 'sallyport.yaml')}.\n` })
    expect(ended.stderr).toMatch(/ {2}\+ toolsets:[\s\S]*The running gateway applies the change/)
    const [, second] = await looked()
    expect(String(second?.text)).toMatch(/^#! .*sallyport.yaml:\d+.*tools/)
    await until(async () => {
      const { stdout } = await gateway.run('tools', 'list', '--toolset', 'small', '--json')
      return stdout.includes('"rec_echo"') ? true : undefined
    })
  })

  it('says which file is in use and where it looks', async () => {
    const file = join(gateway.folder, 'sallyport.yaml')
    const running = await gateway.run('config', 'path')
    expect(running).toMatchObject({ code: 0, stdout: `${file}\n` })
    expect(running.stderr).toContain('The running gateway uses this file.')
    await using elsewhere = await createFolder()
    const none = await runCli(['config', 'path', '--data', join(elsewhere.path, 'none'), '--json'], {
      cwd: elsewhere.path,
    })
    expect(none).toMatchObject({ code: 1 })
    expect(none.json()).toMatchObject({ file: null, running: false, places: expect.any(Array) })
    await writeFile(join(elsewhere.path, 'sallyport.toml'), '')
    const found = await runCli(['config', 'path', '--data', join(elsewhere.path, 'none')], { cwd: elsewhere.path })
    expect(found).toMatchObject({ code: 0, stdout: `${join(elsewhere.path, 'sallyport.toml')}\n` })
    const remote = await runCli(['config', 'edit', '--gateway', 'https://gate.example.com', '--json'])
    expect(remote.json()).toMatchObject({ error: { code: 'request-invalid' } })
  })
})

describe('the editor', () => {
  it.each([
    ['vim', ['vim']],
    ['code --wait', ['code', '--wait']],
    [`"/opt/my editor/bin" -a 'b "c"' d\\ e ""`, ['/opt/my editor/bin', '-a', 'b "c"', 'd e', '']],
    ['sh -c $(x);rm', ['sh', '-c', '$(x);rm']],
  ])('%s is started without a shell', (text, words) => {
    expect(splitCommand(text)).toEqual(words)
  })

  it.each(['"open', "'", '""'])('%s is refused', (text) => {
    expect(() => splitCommand(text)).toThrow(/VISUAL or EDITOR is not a valid command/)
  })

  it('is VISUAL, then EDITOR, then vi', () => {
    expect(findEditor({ VISUAL: 'a', EDITOR: 'b' })).toEqual(['a'])
    expect(findEditor({ VISUAL: '', EDITOR: 'b -n' })).toEqual(['b', '-n'])
    expect(findEditor({})).toEqual(['vi'])
  })

  it('that does not exist is named', async () => {
    const ended = await runCli(['servers', 'edit', 'rec', '--data', gateway.data], {
      env: { VISUAL: 'no-such-editor' },
    })
    expect(ended).toMatchObject({ code: 2 })
    expect(ended.stderr).toContain('The editor no-such-editor could not be started (ENOENT): set VISUAL or EDITOR')
  })
})

describe('open', () => {
  it('prints the address and starts the browser with it', async () => {
    const browser = join(folder.path, 'browser.sh')
    await writeFile(browser, `#!/bin/sh\nprintf '%s' "$1" > '${browser}.seen'\n`)
    await chmod(browser, 0o700)
    const env = { BROWSER: browser }
    const ended = await runCli(['open', 'approvals?state=waiting&x=1', '--data', gateway.data], { env })
    const url = `${gateway.url}/approvals?state=waiting&x=1`
    expect(ended).toMatchObject({ code: 0, stdout: `${url}\n` })
    expect(await readFile(`${browser}.seen`, 'utf8')).toBe(url)
    const printed = await runCli(['open', '--print', '--data', gateway.data], { env: { BROWSER: '/nowhere' } })
    expect(printed).toMatchObject({ code: 0, stdout: `${gateway.url}/\n`, stderr: '' })
    const failed = await runCli(['open', '--data', gateway.data], { env: { BROWSER: '/nowhere' } })
    expect(failed.stderr).toContain('/nowhere could not open the browser (ENOENT)')
  })

  it.each(['https://evil.example.com/', '//evil.example.com', '\\\\evil', 'javascript:alert(1)'])(
    'refuses or keeps %s here',
    async (page) => {
      const ended = await gateway.run('open', page, '--print')
      if (ended.code === 0) expect(new URL(ended.stdout.trim()).origin).toBe(gateway.url)
      else expect(ended.stderr).toContain('is not a page of the dashboard')
    },
  )
})
