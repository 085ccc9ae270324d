/** Set in the environment of every child process. A later gateway uses it to recognise the children of a dead gateway. */
export const instanceMarker = 'SALLYPORT_INSTANCE'

const base = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'TERM']
const baseOnWindows = ['APPDATA', 'LOCALAPPDATA', 'PATHEXT', 'PROGRAMFILES', 'SYSTEMROOT', 'TEMP', 'USERPROFILE']

/** Proxy and certificate settings: without them, `npx` and `uvx` cannot download a server behind a company proxy. */
const network = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'npm_config_registry',
  'npm_config_cafile',
]

export type ChildEnvironment = {
  /** `env` of the server's definition. */
  readonly own: Readonly<Record<string, string>>
  readonly instance: string
  /** The command was configured in a scope of administrators: it may get proxy addresses that contain a password. */
  readonly trusted: boolean
}

/** The environment of a program: basic variables, network settings and the definition's `env`. Nothing else is inherited. */
export function childEnvironment(
  { own, instance, trusted }: ChildEnvironment,
  from: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const inherited: Record<string, string> = {}
  for (const name of process.platform === 'win32' ? [...base, ...baseOnWindows] : base) {
    const value = from[name]
    if (value !== undefined) inherited[name] = value
  }
  for (const name of network) {
    const value = from[name]
    if (value !== undefined && (trusted || userPartsOf(value).length === 0)) inherited[name] = value
  }
  return { ...inherited, ...own, [instanceMarker]: instance }
}

/** The user parts of addresses in the network variables, to be masked: the text as written and the decoded password. */
export function networkCredentials(from: NodeJS.ProcessEnv): string[] {
  return network.flatMap((name) => userPartsOf(from[name] ?? '')).flatMap((part) => [part, ...passwordOf(part)])
}

/**
 * `user:password` of an address: `http://user:password@host`, or without the scheme as curl allows. A password that is not
 * encoded may contain any character, also `/`. The text before the first `/` is then not a valid host with a port.
 */
function userPartsOf(value: string): string[] {
  const address = value.trim().replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
  const authority = address.split(/[/?#]/, 1)[0] ?? ''
  const isHost = /^(\[[^\]]*\]|[^:@]*)(:\d*)?$/.test(authority)
  const end = (authority.includes('@') ? authority : address).lastIndexOf('@')
  return end > 0 && !isHost ? [address.slice(0, end)] : []
}

function passwordOf(userPart: string): string[] {
  const at = userPart.indexOf(':')
  const password = at < 0 ? userPart : userPart.slice(at + 1)
  try {
    return [password, decodeURIComponent(password)]
  } catch {
    return [password]
  }
}
