import { isIP } from 'node:net'

/** Why a way to connect of a registry cannot be used. */
export class Unsupported extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Unsupported'
  }
}

/** Variables that change which program runs, or where its packages come from. */
const steering =
  /^(?:npm_|node_|ld_|dyld_|python|uv_|pip_|docker_|bash_|sallyport_|ssl_|git_|deno_|bun_|java_|jdk_|perl|ruby|(?:https?|all|no)_proxy$)|^(?:path|home|shell|ifs|env|editor|pager|browser|tmpdir|comspec|prompt_command|cdpath)$/i

export function demandHarmlessVariable(name: string): void {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name))
    throw new Unsupported('the name of an environment variable is not allowed')
  if (steering.test(name)) throw new Unsupported(`it sets the environment variable ${name}`)
}

/** The host must be literal text. A registry must not lead the gateway to addresses inside its network. */
export function isPublicHttps(url: string): boolean {
  const host = /^https:\/\/([^/?#\s\\@${}]+)(?:[/?#]|$)/.exec(url)?.[1]
  if (host === undefined || !URL.canParse(`https://${host}`)) return false
  const name = new URL(`https://${host}`).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const isLocal = /(?:^|\.)(?:localhost|local|internal|lan|home\.arpa|intranet|corp)$/i.test(name)
  return isIP(name) === 0 && !isLocal && name.includes('.')
}
