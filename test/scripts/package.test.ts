import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collect, createFolder, type Folder, until } from '../cli/support.ts'
import {
  environmentIn,
  guidePrograms,
  installPacked,
  type Manifest,
  type Resolution,
  root,
  run,
  runProgram,
  typeCheck,
  writeProject,
} from './packed.ts'

let folder: Folder
let project: string
let manifest: Manifest

beforeAll(async () => {
  folder = await createFolder()
  project = folder.path
  manifest = await installPacked(project)
  await writeProject(project)
}, 180_000)
afterAll(() => folder[Symbol.asyncDispose]())

/** Every file of the installed package, by its path in the package. */
function shipped(): string[] {
  return readdirSync(packagePath(), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(packagePath().length + 1))
}

function packagePath(...path: string[]): string {
  return join(project, 'node_modules', 'sallyport', ...path)
}

/** Lines with one type error each. Without the types of the package the errors would be others. */
const wrong: readonly (readonly [line: string, error: string])[] = [
  ["import { createGateway, type Principal, startEverything } from 'sallyport'", 'TS2305'], // no such export
  ["const gateway = await createGateway({ configFile: 'sallyport.yaml' })", 'TS2741'], // `dataFolder` is missing
  ["const principal: Principal = { kind: 'robot', name: 'r2' }", 'TS2322'], // no such kind
  ["const rows: number = gateway.catalog.listTools(principal, { kind: 'all' })", 'TS2322'], // a list of tools
  ['gateway.servers.list().map((server) => server.nickname)', 'TS2339'], // no such property
]

/** An import of a package, not of a file beside it. */
const anImport = /(?:^(?:import|export) [^"'\n]*\bfrom |^import |\bimport\()["']([^.\s"'][^\s"']*)["']/gm

const read = (path: string) => readFileSync(packagePath(path), 'utf8')

it('ships the program, its types, the dashboard, the documents and the demo server, and nothing else', () => {
  const files = shipped()
  expect([...new Set(files.map((path) => path.split('/')[0]))].sort()).toEqual(
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'dist', 'docs', 'examples', 'package.json'].sort(),
  )
  const needed = ['bin/sallyport.js', 'dist/cli.js', 'dist/library.js', 'dist/sqlite-worker.js', 'dist/web/index.html']
  expect(files).toEqual(expect.arrayContaining([...needed, 'dist/types/library/library.d.ts']))
  const unwanted = /\.map$|\/\.|\.test\.|(?<!\.d)\.tsx?$/
  expect(files.filter((path) => unwanted.test(path))).toEqual([])
})

it('ships no path of the machine that built it', () => {
  const built = shipped().filter((path) => path.startsWith('dist/'))
  expect(built.length).toBeGreaterThan(100)
  expect(built.filter((path) => read(path).includes(root))).toEqual([])
})

it('depends on every package that its program and its types name', () => {
  const named = (ending: string) => {
    const files = shipped().filter((path) => path.startsWith('dist/') && path.endsWith(ending))
    const imports = files.flatMap((path) => [...read(path).matchAll(anImport)].map(([, name = '']) => name))
    return [...new Set(imports.filter((name) => !name.startsWith('node:')))].sort()
  }
  expect(named('.js')).toEqual(['better-sqlite3', 'chokidar', 'pg', 'pino'])
  expect(named('.d.ts')).toEqual(['zod'])
  expect(Object.keys(manifest.dependencies)).toEqual(expect.arrayContaining([...named('.js'), ...named('.d.ts')]))
})

describe('the packed package, in a strict project that has nothing else installed', () => {
  it.each<Resolution>(['bundler', 'nodenext'])(
    'type-checks with the module resolution %s, and a wrong use of the library is an error',
    async (resolution) => {
      await writeFile(join(project, 'wrong.ts'), wrong.map(([line]) => `${line}\n`).join(''))
      const { output } = await typeCheck(project, resolution, [...guidePrograms, 'names', 'wrong'])
      const errors = output.split('\n').filter((line) => /^\S/.test(line))
      expect(errors.map((line) => line.replace(/,\d+\).*error (TS\d+):.*/, ') $1'))).toEqual(
        wrong.map(([, error], index) => `wrong.ts(${index + 1}) ${error}`),
      )
    },
  )

  it('has the same names at run time as in its types', async () => {
    const { output } = await runProgram(project, 'names')
    const { typed, found } = JSON.parse(output)
    expect(found).toEqual(typed)
  })

  it('runs the programs of the guide', async () => {
    const listing = await runProgram(project, 'guide-1')
    expect(listing).toMatchObject({ code: 0, output: expect.stringMatching(/^demo_write_note write$[\s\S]*^ok \{/m) })
    expect(await runProgram(project, 'guide-2')).toEqual({ code: 0, output: 'demo_write_note ok\n' })
    expect(await runProgram(project, 'guide-3')).toMatchObject({
      code: 0,
      output: expect.stringMatching(/is running$/m),
    })
  })

  it('has a command that serves the demo server and finds the gateway', async () => {
    const command = join(project, 'node_modules', '.bin', 'sallyport')
    const { version } = JSON.parse(read('package.json'))
    expect(await run(project, command, ['--version'])).toEqual({ code: 0, output: `${version}\n` })
    // The folder of the project has a configuration, and the demo server is for those who have none.
    const empty = join(project, 'empty')
    await mkdir(empty)
    const data = join(empty, 'data')
    const args = ['serve', '--demo', '--port', '0', '--data', data]
    const serving = spawn(command, args, { cwd: empty, env: environmentIn(project) })
    const ended = once(serving, 'exit')
    const [stdout, stderr] = [collect(serving, 'stdout'), collect(serving, 'stderr')]
    try {
      await until(() => /^sallyport ready/m.test(stdout()) || serving.exitCode !== null || undefined)
      expect(serving.exitCode, stderr()).toBeNull()
      const tools = await until(async () => {
        const { output } = await run(empty, command, ['tools', 'list', '--data', data])
        return output.includes('demo_') ? output : undefined
      })
      expect(tools).toContain('demo_list_notes')
      expect(await run(empty, command, ['status', '--data', data])).toMatchObject({ code: 0 })
    } finally {
      serving.kill('SIGTERM')
      await ended
    }
  })
})
