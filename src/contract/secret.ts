import { z } from 'zod'

/** Named like an environment variable, because `${NAME}` may mean either. */
export const SecretName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be letters, digits and _, at most 128, and not begin with a digit')
  .refine((name) => !/^SALLYPORT_/i.test(name), 'must not begin with SALLYPORT_, which names the gateway’s own')

/** A host by name, with a port if only that port is meant. */
export const SecretHost = z
  .string()
  .regex(
    /^[A-Za-z0-9.-]+(:\d{1,5})?$|^\[[0-9a-fA-F:.]+\](:\d{1,5})?$/,
    'must be a host such as api.github.com, or HOST:PORT',
  )
  .transform((host) => host.toLowerCase())

/** Shorter values turn up by chance, so hiding them would garble what has nothing to do with them. */
export const leastMasked = 8

/** What anybody gets to see of a secret: never the value. */
export const Secret = z.object({
  id: z.string(),
  name: z.string(),
  scope: z.string(),
  hosts: z.array(z.string()).describe('The only hosts that it may be sent to; empty: any'),
  servers: z.array(z.string()).describe('The only servers that it may be handed to; empty: any'),
  masked: z
    .boolean()
    .describe(`false for values shorter than ${leastMasked} characters: they are used, but not hidden`),
  createdAt: z.string(),
  createdBy: z.string(),
  updatedAt: z.string(),
  updatedBy: z.string(),
  lastUsedAt: z.string().optional(),
})
export type Secret = z.infer<typeof Secret>

/** What a change of a secret answers. */
export const SavedSecret = Secret.extend({ warning: z.string().optional().describe('What to know about this value') })
export type SavedSecret = z.infer<typeof SavedSecret>
