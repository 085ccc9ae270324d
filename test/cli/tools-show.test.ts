import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFolder, type Folder, recording, type Served, serveHere } from './support.ts'

let gateway: Served
let folder: Folder

const inputSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'Where the file is' },
    mode: { enum: ['text', 'binary'], default: 'text' },
    lines: { type: 'array', items: { type: 'integer' } },
  },
  required: ['path'],
}

beforeAll(async () => {
  folder = await createFolder()
  const definitions = join(folder.path, 'definitions.json')
  await writeFile(definitions, JSON.stringify({ read_thing: { title: 'Read a thing', inputSchema } }))
  gateway = await serveHere({ servers: { rec: recording('--definitions', definitions) } })
  await gateway.run('servers', 'reconnect', 'rec')
  return () => folder[Symbol.asyncDispose]()
})

afterAll(() => gateway?.[Symbol.asyncDispose]())

describe('tools show', () => {
  it('prints what the tool is, its arguments as a table, and a call that can be pasted', async () => {
    const shown = await gateway.run('tools', 'show', 'rec_read_thing')
    expect(shown).toMatchObject({ code: 0 })
    expect(shown.stdout).toMatch(
      /^tool +rec_read_thing\ntitle +Read a thing\nserver +rec \(original name: read_thing\)\n/,
    )
    expect(shown.stdout).toMatch(/^risk +read, from: annotations of the tool$/m)
    expect(shown.stdout).toMatch(/^ARGUMENT +TYPE +REQUIRED +DEFAULT +DESCRIPTION$/m)
    expect(shown.stdout).toMatch(/^path +string +yes +Where the file is$/m)
    expect(shown.stdout).toMatch(/^mode +"text" \| "binary" +no +"text"$/m)
    expect(shown.stdout).toMatch(/^lines +array of integer +no$/m)
    const example = /sallyport (tools call .*)$/m.exec(shown.stdout)?.[1] ?? ''
    expect(example).toBe('tools call rec_read_thing --arg path=text')
    expect(await gateway.run(...example.split(' '))).toMatchObject({ code: 0 })
  })

  it('has the same for programs, and suggests the name that was meant', async () => {
    const shown = (await gateway.run('tools', 'show', 'rec_read_thing', '--json')).json()
    expect(shown).toMatchObject({
      name: 'rec_read_thing',
      arguments: [
        { name: 'path', type: 'string', required: true },
        { name: 'mode', default: 'text' },
        { name: 'lines' },
      ],
      example: 'sallyport tools call rec_read_thing --arg path=text',
    })
    const wrong = await gateway.run('tools', 'show', 'rec_read_thin', '--json')
    expect(wrong).toMatchObject({ code: 1 })
    expect(wrong.json()).toMatchObject({
      error: { code: 'tool-not-found', message: expect.stringContaining('did you mean rec_read_thing?') },
    })
  })
})
