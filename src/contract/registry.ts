import { z } from 'zod'
import { GalleryConnection, GalleryEntry } from './gallery.ts'

/** The name of a server in a registry: a domain name in reverse order, and a name. */
export const RegistryName = z
  .string()
  .max(200)
  .regex(
    /^[a-zA-Z0-9][a-zA-Z0-9.-]*\/[a-zA-Z0-9][a-zA-Z0-9._-]*$/,
    'must be a name of the registry, such as io.github.NAME/SERVER',
  )

/** Ranges and `latest` would run whatever is published next. */
export const RegistryVersion = z
  .string()
  .max(100)
  .regex(/^\d[A-Za-z0-9.+_-]*$/, 'must be one exact version, such as 1.2.3')

export const RegistrySettings = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .default('https://registry.modelcontextprotocol.io')
    .describe('Address of a registry with the API /v0.1/servers'),
})
export type RegistrySettings = z.infer<typeof RegistrySettings>

/** A version of a server in a registry, as an entry that can be added. */
export const RegistryServer = GalleryEntry.omit({ id: true, connections: true, verified: true }).extend({
  id: RegistryName,
  version: RegistryVersion,
  status: z.enum(['active', 'deprecated', 'deleted', 'unknown']).describe('State in the registry'),
  connections: z.array(GalleryConnection).describe('Ways to connect; may be empty'),
  unsupported: z.array(z.string()).describe('Ways to connect that cannot be used, with the reason'),
})
export type RegistryServer = z.infer<typeof RegistryServer>
