import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFolder, runCli, serve } from './support.ts'

it('says which folder of the user cannot be used, and blames nobody else', async () => {
  await using folder = await createFolder()
  const file = join(folder.path, 'file')
  await writeFile(file, '')
  const { code, stderr } = await runCli(['serve', '--data', join(file, 'data'), '--port', '0'])
  expect(code).toBe(1)
  expect(stderr).toContain(`${join(file, 'data')} cannot be used: it is not a folder (ENOTDIR)`)
  expect(stderr).not.toContain('defect')
})

it('says that the disk is full when an export does not fit', async () => {
  if (!existsSync('/dev/full')) return // only Linux has a disk that is always full
  await using gateway = await serve({ servers: {} })
  const { code, stderr } = await gateway.run('audit', 'export', '--output', '/dev/full')
  expect([code, stderr]).toEqual([1, expect.stringContaining('/dev/full cannot be written: the disk is full (ENOSPC)')])
  expect(stderr).not.toContain('defect')
})
