import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'

export const root = resolve(import.meta.dirname, '../..')
const execute = promisify(execFile)

const Manifest = z.object({
  dependencies: z.record(z.string(), z.string()),
  bin: z.record(z.string(), z.string()),
})
export type Manifest = z.infer<typeof Manifest>

export type Ran = { readonly code: number; readonly output: string }

/** Runs a program in a folder as its user would: without the variables of the test run. */
export async function run(folder: string, command: string, args: readonly string[], env = {}): Promise<Ran> {
  const options = { cwd: folder, env: { ...environmentIn(folder), ...env }, maxBuffer: 64 * 1024 * 1024 }
  try {
    const { stdout, stderr } = await execute(command, args, options)
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = Object(error)
    if (typeof code !== 'number') throw error
    return { code, output: `${stdout}${stderr}` }
  }
}

export function environmentIn(folder: string): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:SALLYPORT_|npm_package_)/.test(name))
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter)
  return { ...Object.fromEntries(inherited), HOME: folder, PATH: path, NO_COLOR: '1' }
}

export async function runNpm(folder: string, args: readonly string[]): Promise<string> {
  const npm = process.env.npm_execpath
  const [command, ...first] = npm === undefined ? ['npm'] : [process.execPath, npm]
  const { stdout } = await execute(command, [...first, ...args, '--loglevel=error'], { cwd: folder })
  return stdout
}

/** `npm pack`, with the build that belongs to it. Returns the path of the file. */
export async function pack(folder: string): Promise<string> {
  await runNpm(root, ['pack', '--pack-destination', folder])
  const [file = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'))
  return join(folder, file)
}

/**
 * Puts into a project what `npm install` of the packed file, typescript and @types/node would put there. The packages come
 * from the repository's own installation, so that nothing is downloaded: those that npm installs for `dependencies`, and no
 * others. Tests in `test/slow` install from the registry.
 */
export async function installPacked(project: string): Promise<Manifest> {
  const own = join(project, 'node_modules', 'sallyport')
  await mkdir(own, { recursive: true })
  await Promise.all([unpack(project, own), copyDependencies(project)])
  const manifest = Manifest.parse(JSON.parse(await readFile(join(own, 'package.json'), 'utf8')))
  await mkdir(join(project, 'node_modules', '.bin'))
  for (const [name, file] of Object.entries(manifest.bin)) {
    await symlink(join('..', 'sallyport', file), join(project, 'node_modules', '.bin', name))
  }
  return manifest
}

async function unpack(project: string, folder: string): Promise<void> {
  await execute('tar', ['-xzf', await pack(project), '-C', folder, '--strip-components=1'])
}

async function copyDependencies(project: string): Promise<void> {
  const listed = await runNpm(root, ['ls', '--omit=dev', '--all', '--parseable', '--package-lock-only'])
  const paths = listed
    .split('\n')
    .map((line) => relative(root, line.trim()))
    .filter((path) => path.startsWith('node_modules'))
  const all = [...paths, 'node_modules/@types/node', 'node_modules/undici-types']
  for (const path of all) await cp(join(root, path), join(project, path), { recursive: true })
}

const compilerOptions = {
  target: 'es2024',
  lib: ['es2024'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
}

/** Both ways in which a project finds the types of a package. */
export const resolutions = {
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'preserve', moduleResolution: 'bundler' },
} as const
export type Resolution = keyof typeof resolutions

export const guidePrograms = ['guide-1', 'guide-2', 'guide-3'] as const

/** Compares the names in the types with those at run time. */
const namesProgram = `import * as sallyport from 'sallyport'
const typed: Record<keyof typeof sallyport, true> = {
  createGateway: true,
  adminToken: true,
  createMasking: true,
  GatewayError: true,
  version: true,
}
console.log(JSON.stringify({ typed: Object.keys(typed).sort(), found: Object.keys(sallyport).sort() }))
`

/** A project with the programs of the guide and a server that they call. */
export async function writeProject(project: string): Promise<void> {
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }\n')
  const guide = await readFile(join(root, 'docs', 'guide', 'library.md'), 'utf8')
  const programs = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = '']) => text)
  if (programs.length !== guidePrograms.length) throw new Error(`The guide has ${programs.length} programs`)
  for (const [index, name] of guidePrograms.entries()) {
    await writeFile(join(project, `${name}.ts`), programs[index] ?? '')
  }
  await writeFile(join(project, 'names.ts'), namesProgram)
  const demo = join(project, 'node_modules', 'sallyport', 'examples', 'demo-server', 'server.mjs')
  const servers = { demo: { transport: 'stdio', command: process.execPath, args: [demo] } }
  await writeFile(join(project, 'sallyport.yaml'), JSON.stringify({ servers }))
}

const ownCompiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')

/** Type-checks some programs of a project. */
export async function typeCheck(
  project: string,
  resolution: Resolution,
  names: readonly string[],
  compiler = ownCompiler,
): Promise<Ran> {
  const file = join(project, `tsconfig.${resolution}.${names.length}.json`)
  const files = names.map((name) => `${name}.ts`)
  const settings = { compilerOptions: { ...compilerOptions, ...resolutions[resolution] }, files }
  await writeFile(file, JSON.stringify(settings))
  return run(project, process.execPath, [compiler, '-p', file])
}

/** Runs a program of a project on a new data folder. Node removes the types. */
export async function runProgram(project: string, name: string): Promise<Ran> {
  await rm(join(project, '.sallyport'), { recursive: true, force: true })
  const env = { SALLYPORT_ADMIN_PASSWORD: 'correct horse battery staple' }
  return run(project, process.execPath, [`${name}.ts`], env)
}
