import type { Listen, ScopedServer } from '../contract/config.ts'

const loopback = ['localhost', '127.0.0.1', '[::1]']

/** The entry with which a program uses this gateway. The gateway must not become a server of itself. */
export function leadsToGateway(definition: ScopedServer, { port, publicUrl }: Listen): boolean {
  if (definition.transport === 'stdio') {
    const words = [definition.command ?? '', ...(definition.args ?? [])]
    const at = words.findIndex((word) => /(?:^|[\\/])sallyport(?:\.(?:cmd|exe|js))?(?:@[\w.-]+)?$/.test(word))
    return at !== -1 && words[at + 1] === 'stdio'
  }
  const { url = '' } = definition
  if (!URL.canParse(url)) return false
  const target = new URL(url)
  if (!/^\/mcp(?:$|[/?])/.test(target.pathname)) return false
  if (publicUrl !== undefined && URL.canParse(publicUrl) && new URL(publicUrl).origin === target.origin) return true
  return loopback.includes(target.hostname) && target.port === String(port)
}
