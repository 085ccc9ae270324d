import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { readInside } from '../../src/lib/inside-file.ts'

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-inside-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const read = (folder: string, file: string) => readInside({ folder, file, mostBytes: 100 })

it('reads a file in a subfolder, also if a folder above is reached through a link', async () => {
  const above = await newFolder()
  await mkdir(join(above, 'clone/.vscode'), { recursive: true })
  await writeFile(join(above, 'clone/.vscode/mcp.json'), 'inside')
  const link = join(await newFolder(), 'link')
  await symlink(above, link)
  expect(await read(join(link, 'clone'), '.vscode/mcp.json')).toEqual({ ok: true, bytes: Buffer.from('inside') })
})

it('follows no link: not of the folder, not of a folder below it, not of the file', async () => {
  const outside = await newFolder()
  await writeFile(join(outside, 'mcp.json'), 'outside')
  const folder = await newFolder()
  await symlink(outside, join(folder, 'sub'))
  await symlink(join(outside, 'mcp.json'), join(folder, 'mcp.json'))
  for (const [path, file] of [
    [join(folder, 'sub'), 'mcp.json'],
    [join(folder, 'sub/'), 'mcp.json'],
    [folder, 'sub/mcp.json'],
    [folder, 'mcp.json'],
  ] as const) {
    expect(await read(path, file)).toMatchObject({ ok: false, problem: expect.stringMatching(/is a symbolic link/) })
  }
})

it.each([
  ['the folder', 'sub', 'mcp.json'],
  ['a folder below it', '', 'sub/mcp.json'],
])('never returns a file outside, however fast %s is replaced by a link', async (_, below, file) => {
  const outside = await newFolder()
  await writeFile(join(outside, 'mcp.json'), 'outside')
  const folder = await newFolder()
  await mkdir(join(folder, 'real'))
  await writeFile(join(folder, 'real/mcp.json'), 'inside')
  await symlink(outside, join(folder, 'link'))
  let racing = true
  const swap = async () => {
    for (let round = 0; racing; round++) {
      const name = round % 2 === 0 ? 'real' : 'link'
      await rename(join(folder, name), join(folder, 'sub'))
      await rename(join(folder, 'sub'), join(folder, name))
    }
  }
  const swapping = swap()
  const seen = new Set<string>()
  for (let round = 0; round < 1500; round++) {
    const found = await read(join(folder, below), file)
    if (found.ok) seen.add(found.bytes.toString())
  }
  racing = false
  await swapping
  expect([...seen].filter((text) => text !== 'inside')).toEqual([])
})
