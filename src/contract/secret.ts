import { z } from 'zod'

/** The same syntax as for environment variables, because `${NAME}` can refer to both. */
export const SecretName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be at most 128 letters, digits and _, and must not begin with a digit')
  .refine((name) => !/^SALLYPORT_/i.test(name), 'must not begin with SALLYPORT_, which is reserved for the gateway')

/** A host name, with a port if the secret may be sent only to that port. */
export const SecretHost = z
  .string()
  .regex(
    /^[A-Za-z0-9.-]+(:\d{1,5})?$|^\[[0-9a-fA-F:.]+\](:\d{1,5})?$/,
    'must be a host such as api.github.com, or HOST:PORT',
  )
  .transform((host) => host.toLowerCase())

/** Shorter values can occur in other text by chance, and masking would garble that text. */
export const leastMasked = 8

/** The data about a secret that can be read. The value is not included. */
export const Secret = z.object({
  id: z.string(),
  name: z.string(),
  scope: z.string(),
  hosts: z.array(z.string()).describe('Hosts that the secret may be sent to; empty means any host'),
  servers: z.array(z.string()).describe('Servers that may use the secret; empty means any server'),
  masked: z
    .boolean()
    .describe(`False for values shorter than ${leastMasked} characters: they can be used, but they are not masked`),
  createdAt: z.string(),
  createdBy: z.string(),
  updatedAt: z.string(),
  updatedBy: z.string(),
  lastUsedAt: z.string().optional(),
})
export type Secret = z.infer<typeof Secret>

/** The answer to storing a secret. */
export const SavedSecret = Secret.extend({ warning: z.string().optional().describe('A problem with the stored value') })
export type SavedSecret = z.infer<typeof SavedSecret>
