import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GalleryConnection, GalleryEntry } from '../../src/contract/gallery.ts'
import type { ServerDefinition, Validation } from '../../src/contract/server.ts'
import { builtIn } from '../../src/gallery/data.ts'
import { fill } from '../../src/gallery/fill.ts'
import type { TestGateway } from '../support/gateway.ts'

type Package = { readonly name: string; readonly version: string }
export type Startable = {
  readonly label: string
  readonly wanted: Package
  readonly entry: GalleryEntry
  readonly connection: Extract<GalleryConnection, { transport: 'stdio' }>
  readonly started: NonNullable<GalleryConnection['started']>
}

/** The packages that are development dependencies of this repository. */
export const installed = new Set(['everything', 'filesystem', 'memory'])

/** The connections that start without an account and without a network. */
export const startable: readonly Startable[] = [...builtIn.values()].flatMap((entry) =>
  entry.connections.flatMap((connection) => {
    const { started } = connection
    if (started === undefined || connection.transport !== 'stdio') return []
    const [, spec = ''] = connection.args
    const at = spec.lastIndexOf('@')
    const wanted = { name: spec.slice(0, at), version: spec.slice(at + 1) }
    return [{ label: entry.id, wanted, entry, connection, started }]
  }),
)

/** Starts a package that is installed in `modules`, with the values of the entry, and lists its tools. */
export async function start(gateway: TestGateway, found: Startable, modules: string): Promise<Validation> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-gallery-'))
  try {
    const { entry, connection, wanted } = found
    const values = Object.fromEntries(
      Object.entries(found.started.values ?? {}).map(([name, value]) => [name, value.replace('{folder}', folder)]),
    )
    // A test has no secret store to fill: its placeholders are no secrets.
    const variables = connection.variables.map((variable) => ({
      ...variable,
      secret: false,
      state: toState(values[variable.name], variable.default),
    }))
    const definition = fill({ entry, connection, variables, values, mayChooseRisk: true })
    const by = { kind: 'user', name: 'root', role: 'administrator', person: true } as const
    const local = await toLocal(definition, wanted, modules, folder)
    return await gateway.gateway.servers.validate(by, { definition: local }, AbortSignal.timeout(120_000))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function toState(value: string | undefined, fallback: string | undefined): 'given' | 'default' | 'unset' {
  if (value !== undefined) return 'given'
  return fallback === undefined ? 'unset' : 'default'
}

/** The same program as with npx, without its download. */
async function toLocal(
  definition: ServerDefinition,
  { name }: Package,
  modules: string,
  folder: string,
): Promise<ServerDefinition> {
  if (definition.transport !== 'stdio') throw new Error(`${name} is not a command`)
  const { bin } = JSON.parse(await readFile(join(modules, name, 'package.json'), 'utf8'))
  const env = { HOME: folder, ...definition.env }
  const path = join(modules, name, programOf(name, bin))
  return { ...definition, command: process.execPath, args: [path, ...definition.args.slice(2)], env, cwd: folder }
}

/** As npx chooses: the only program, or the one with the name of the package. */
function programOf(name: string, bin: string | Record<string, string>): string {
  if (typeof bin === 'string') return bin
  const programs = [...new Set(Object.values(bin))]
  const chosen = programs.length === 1 ? programs[0] : bin[name.split('/').at(-1) ?? name]
  if (chosen === undefined) throw new Error(`npx cannot choose a program of ${name}`)
  return chosen
}
