import { z } from 'zod'
import { GalleryConnection } from '../contract/gallery.ts'
import { RegistryName, type RegistryServer, RegistryVersion } from '../contract/registry.ts'
import { isPublicHttps, Unsupported } from './registry-checks.ts'
import { createTexts, Input } from './registry-texts.ts'

const Argument = Input.extend({
  type: z.enum(['named', 'positional']),
  name: z.string().max(128).optional(),
  valueHint: z.string().max(256).optional(),
  isRepeated: z.boolean().optional(),
})
const NamedInput = Input.extend({ name: z.string().max(128) })

const Package = z.object({
  registryType: z.string().max(32),
  identifier: z.string().max(512),
  version: z.string().max(100).optional(),
  registryBaseUrl: z.string().max(512).optional(),
  fileSha256: z.string().max(128).optional(),
  runtimeArguments: z.array(z.unknown()).max(64).optional(),
  packageArguments: z.array(Argument).max(32).optional(),
  environmentVariables: z.array(NamedInput).max(32).optional(),
  transport: z.object({ type: z.string().max(32) }).optional(),
})
type Package = z.infer<typeof Package>

const Remote = z.object({
  type: z.string().max(32),
  url: z.string().max(2048),
  headers: z.array(NamedInput).max(32).optional(),
  variables: z.record(z.string().max(64), Input).optional(),
})
type Remote = z.infer<typeof Remote>

/** One item of an answer of the registry. Fields that are not listed here are ignored. */
const Item = z.object({
  server: z.object({
    name: RegistryName,
    version: RegistryVersion,
    description: z.string().max(4096).default(''),
    title: z.string().max(256).optional(),
    websiteUrl: z.string().max(2048).optional(),
    repository: z.object({ url: z.string().max(2048).optional() }).optional(),
    packages: z.array(Package).max(20).optional(),
    remotes: z.array(Remote).max(20).optional(),
  }),
  _meta: z
    .object({
      'io.modelcontextprotocol.registry/official': z.object({ status: z.string().max(32) }).optional(),
    })
    .optional(),
})

/** Undefined if the item has a wrong shape, or names that are not allowed. */
export function toRegistryServer(value: unknown): RegistryServer | undefined {
  const parsed = Item.safeParse(value)
  if (!parsed.success) return undefined
  const { server, _meta } = parsed.data
  const { name, version, packages = [], remotes = [] } = server
  const connections: GalleryConnection[] = []
  const unsupported: string[] = []
  const collect = (label: string, make: (id: string) => z.input<typeof GalleryConnection>) => {
    try {
      connections.push(GalleryConnection.parse(make(`${label}-${connections.length + 1}`)))
    } catch (error) {
      const reason = error instanceof Unsupported ? error.message : 'its definition is not valid'
      unsupported.push(`${label}: ${reason}`)
    }
  }
  for (const remote of remotes) collect('remote', (id) => toRemote(name, id, remote))
  for (const each of packages) collect('package', (id) => toPackage(name, id, each))
  const links = [server.websiteUrl, server.repository?.url].filter((link) => link !== undefined && isWebLink(link))
  return {
    ...{ id: name, version, connections, unsupported, category: 'registry', official: false },
    title: tidy(server.title ?? name, 128) || name.slice(0, 128),
    purpose: tidy(server.description, 200) || 'No description.',
    status: toStatus(_meta?.['io.modelcontextprotocol.registry/official']?.status),
    risk: { tools: {} },
    ...(links[0] !== undefined && { docs: links[0] }),
  }
}

function toStatus(status: string | undefined): RegistryServer['status'] {
  return status === 'active' || status === 'deprecated' || status === 'deleted' ? status : 'unknown'
}

/** Text of strangers in one line, without characters that reorder or hide text. */
function tidy(text: string, most: number): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, most)
    .trim()
}

function isWebLink(link: string): boolean {
  return z.url({ protocol: /^https?$/ }).safeParse(link).success
}

function toRemote(server: string, id: string, remote: Remote): z.input<typeof GalleryConnection> {
  const transports: Readonly<Record<string, 'http' | 'sse'>> = { 'streamable-http': 'http', sse: 'sse' }
  const transport = Object.hasOwn(transports, remote.type) ? transports[remote.type] : undefined
  if (transport === undefined) throw new Unsupported(`the transport ${JSON.stringify(remote.type)} is not supported`)
  const texts = createTexts(server)
  const url = texts.address(remote.url, remote.variables ?? {})
  if (!isPublicHttps(url)) throw new Unsupported('its address is not a public https address')
  const headers = Object.fromEntries((remote.headers ?? []).map((header) => [header.name, texts.named(header)]))
  if (!Object.keys(headers).every((name) => /^[A-Za-z0-9-]{1,64}$/.test(name)))
    throw new Unsupported('the name of a header is not allowed')
  return {
    id,
    title: new URL(url.replace(/\$\{\w+\}/g, 'x')).hostname,
    transport,
    url,
    headers,
    variables: texts.variables(),
  }
}

/** How each kind of package runs in one exact version. Arguments after the package belong to the program. */
const runners: Readonly<Record<string, { base: string; name: RegExp; run(id: string, version: string): string[] }>> = {
  npm: {
    base: 'https://registry.npmjs.org',
    name: /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/,
    run: (id, version) => ['npx', '-y', `${id}@${version}`],
  },
  pypi: {
    base: 'https://pypi.org',
    name: /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    run: (id, version) => ['uvx', `${id}==${version}`],
  },
}
const image =
  /^[a-z0-9][a-z0-9._/-]*(?::\d+\/[a-z0-9._/-]+)?(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$/

function toPackage(server: string, id: string, wanted: Package): z.input<typeof GalleryConnection> {
  const { registryType, identifier, runtimeArguments = [], environmentVariables = [], packageArguments = [] } = wanted
  if ((wanted.transport?.type ?? 'stdio') !== 'stdio')
    throw new Unsupported('it does not use standard input and output')
  // They are options of npx, uvx or docker, which could start another program or open the machine to the container.
  if (runtimeArguments.length > 0) throw new Unsupported('it sets options of the program that starts it')
  if (wanted.fileSha256 !== undefined) throw new Unsupported('it needs a check of its file hash')
  const texts = createTexts(server)
  const env = Object.fromEntries(
    environmentVariables.map((variable) => [texts.environment(variable.name), texts.named(variable)]),
  )
  const [command = '', ...args] = toCommand(wanted, Object.keys(env))
  const options = packageArguments.flatMap((argument) => {
    if (argument.isRepeated) throw new Unsupported('it needs an argument several times')
    return texts.argument(argument)
  })
  return {
    ...{ id, title: `${registryType} ${identifier}`.slice(0, 128), transport: 'stdio', command },
    ...{ args: [...args, ...options], env, variables: texts.variables(), isolation: 'sandbox' },
  }
}

function toCommand({ registryType, identifier, version, registryBaseUrl }: Package, env: readonly string[]): string[] {
  if (registryType === 'oci') return toContainer(identifier, version, env)
  const runner = Object.hasOwn(runners, registryType) ? runners[registryType] : undefined
  if (runner === undefined)
    throw new Unsupported(`packages of the kind ${JSON.stringify(registryType)} are not supported`)
  if (registryBaseUrl !== undefined && registryBaseUrl.replace(/\/$/, '') !== runner.base)
    throw new Unsupported('it comes from another package registry')
  if (!runner.name.test(identifier)) throw new Unsupported('the name of its package is not allowed')
  if (!RegistryVersion.safeParse(version).success || (registryType === 'npm' && !wholeVersion.test(version ?? '')))
    throw new Unsupported('it has no exact version')
  return runner.run(identifier, version ?? '')
}

/** `1.x` and `1` are ranges for npm, and images have tags such as `edge` that move. */
const wholeVersion = /^v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/

function toContainer(identifier: string, version: string | undefined, env: readonly string[]): string[] {
  const hasTag = /(?::[^/]+|@sha256:[a-f0-9]{64})$/.test(identifier)
  const reference = hasTag ? identifier : `${identifier}:${version ?? ''}`
  const isExact = /@sha256:[a-f0-9]{64}$/.test(reference) || wholeVersion.test(reference.split(':').at(-1) ?? '')
  if (!image.test(reference) || !isExact) throw new Unsupported('its image has no exact version')
  return ['docker', 'run', '-i', '--rm', ...env.flatMap((name) => ['-e', name]), reference]
}
