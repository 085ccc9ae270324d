import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFolder, runCli } from './support.ts'

it('looks for a gateway here, and in the home folder if there is none here', async () => {
  await using home = await createFolder()
  await using here = await createFolder()
  const look = async () => (await runCli(['status'], { cwd: here.path, env: { HOME: home.path } })).stderr
  expect(await look()).toContain(`data folder ${join(here.path, '.sallyport')}`)
  await mkdir(join(home.path, '.sallyport'))
  expect(await look()).toContain(`data folder ${join(home.path, '.sallyport')}`)
  await mkdir(join(here.path, '.sallyport'))
  expect(await look()).toContain(`data folder ${join(here.path, '.sallyport')}`)
})
