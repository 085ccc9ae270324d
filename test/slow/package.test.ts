import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFolder } from '../cli/support.ts'
import { guidePrograms, pack, root, run, runNpm, runProgram, typeCheck, writeProject } from '../scripts/packed.ts'

it('installs from the registry into an empty project, type-checks there and runs', async () => {
  await using folder = await createFolder()
  const project = folder.path
  const tarball = await pack(project)
  await writeProject(project)
  const { version, devDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const others = ['typescript', '@types/node'].map((name) => `${name}@${devDependencies[name]}`)
  await runNpm(project, ['install', '--no-audit', '--no-fund', tarball, ...others])

  const compiler = join(project, 'node_modules', 'typescript', 'bin', 'tsc')
  for (const resolution of ['bundler', 'nodenext'] as const) {
    expect(await typeCheck(project, resolution, guidePrograms, compiler)).toEqual({ code: 0, output: '' })
  }
  for (const name of guidePrograms) expect(await runProgram(project, name)).toMatchObject({ code: 0 })
  const { output } = await run(project, 'npx', ['--no-install', 'sallyport', '--version'])
  expect(output.split('\n')[0]).toBe(version) // npm may add a notice about itself
})
