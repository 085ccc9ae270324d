import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { addKey, loadKeys, saveKeys } from '../../src/storage/key.ts'
import { temporaryFolder } from '../storage/support.ts'
import { countOpening, fill, surviveKills } from './rotating.ts'
import { openSecrets } from './support.ts'

it('a rotation that is killed at any moment leaves every secret open under exactly one key', { timeout: 120_000 }, () =>
  surviveKills(5),
)

it('a rotation whose first step alone was done goes on at the next start', async () => {
  const folder = temporaryFolder()
  const names = await fill(folder)
  const { keys } = await loadKeys({ folder, environment: {} })
  await addKey(join(folder, 'key'), keys)
  await (await openSecrets({ folder })).close()
  expect(countOpening(folder)).toEqual(names.map(() => 1))
  expect(readFileSync(join(folder, 'key'), 'utf8')).not.toContain(keys[0]?.toString('base64'))
})

it('in the wrong order, forgetting the old key before everything is encrypted anew, nothing would open', async () => {
  const folder = temporaryFolder()
  const names = await fill(folder)
  const { keys } = await loadKeys({ folder, environment: {} })
  const fresh = await addKey(join(folder, 'key'), keys)
  await saveKeys(join(folder, 'key'), [fresh])
  expect(countOpening(folder)).toEqual(names.map(() => 0))
  await expect(openSecrets({ folder })).rejects.toMatchObject({ code: 'key-wrong' })
})
