import { once } from 'node:events'
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { collect, createFolder, findFreePort, serve, startCli, until, writeConfig } from './support.ts'

/** Copies what is appended to a file to its standard error, byte by byte as it comes. */
const talkative = `
  const { readFileSync, watchFile } = require('node:fs')
  let read = 0
  const copy = () => {
    const text = readFileSync(process.argv[1], 'utf8')
    process.stderr.write(text.slice(read))
    read = text.length
  }
  watchFile(process.argv[1], { interval: 20 }, copy)
  copy()
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
  const info = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'talk', version: '1' } }
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line)
    if (method === 'initialize') say({ id, result: info })
    else if (method === 'tools/list') say({ id, result: { tools: [] } })
    else if (id) say({ id, result: {} })
  }).on('close', () => process.exit())
`

it('follows what a server writes over a restart of server and gateway, each line once, until Ctrl+C', async () => {
  await using folder = await createFolder()
  const file = join(folder.path, 'lines')
  await writeFile(file, 'one\ntwo\n')
  const port = await findFreePort()
  const server = { transport: 'stdio', command: process.execPath, args: ['-e', talkative, file] }
  const config = { listen: { port }, servers: { talk: server } }
  await using gateway = await serve(config)
  await gateway.run('servers', 'reconnect', 'talk')
  const child = startCli(['servers', 'logs', 'talk', '-f', '--data', gateway.data])
  const [stdout, stderr] = [collect(child, 'stdout'), collect(child, 'stderr')]
  const printed = (last: string) => until(() => (stdout().endsWith(`${last}\n`) ? stdout().split('\n') : undefined))
  try {
    await printed('two')
    await appendFile(file, 'three\nfo')
    await printed('three')
    await appendFile(file, 'ur\n')
    expect((await printed('four')).slice(-4)).toEqual(['two', 'three', 'four', ''])

    // The program is started again, and what it wrote before stays.
    await writeFile(file, 'five\n')
    await gateway.run('servers', 'reconnect', 'talk')
    expect((await printed('five')).slice(-3)).toEqual(['four', 'five', ''])

    // An entry that changes is a new connection whose lines are counted from the beginning.
    await writeFile(file, 'six\nseven\neight\nnine\nten\neleven\ntwelve\n')
    await writeConfig(gateway.folder, {
      ...config,
      servers: { talk: { ...server, description: 'anew', env: { A: 'b' } } },
    })
    expect((await printed('twelve')).slice(-9)).toEqual([
      'five',
      'six',
      'seven',
      'eight',
      'nine',
      'ten',
      'eleven',
      'twelve',
      '',
    ])
    child.kill('SIGINT')
    const [code]: (number | null)[] = await once(child, 'close')
    expect([code, stderr()]).toEqual([0, ''])
  } finally {
    child.kill('SIGKILL')
  }
})

it('goes on when the gateway was started again, with one document per line for programs', async () => {
  await using folder = await createFolder()
  const file = join(folder.path, 'lines')
  await writeFile(file, 'one\n')
  const config = { servers: { talk: { transport: 'stdio', command: process.execPath, args: ['-e', talkative, file] } } }
  await using gateway = await serve(config)
  await gateway.run('servers', 'reconnect', 'talk')
  const child = startCli(['servers', 'logs', 'talk', '--follow', '--json', '--data', gateway.data])
  const stdout = collect(child, 'stdout')
  try {
    await until(() => (stdout().endsWith('{"line":"one"}\n') ? true : undefined))
    await gateway.stop()
    await writeFile(file, 'two\n')
    const again = startCli([
      'serve',
      '--config',
      join(gateway.folder, 'sallyport.yaml'),
      '--data',
      gateway.data,
      '--port',
      '0',
    ])
    await until(() => (stdout().endsWith('{"line":"two"}\n') ? true : undefined)).finally(() => again.kill())
    expect(
      stdout()
        .split('\n')
        .filter((line) => line.includes('two')),
    ).toHaveLength(1)
    child.kill('SIGINT')
    const [code]: (number | null)[] = await once(child, 'close')
    expect(code).toBe(0)
  } finally {
    child.kill('SIGKILL')
  }
})
