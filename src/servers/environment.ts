/** In every child's environment: proves to a later gateway that a process belongs to a dead one. */
export const instanceMarker = 'SALLYPORT_INSTANCE'

const base = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'TERM']
const baseOnWindows = ['APPDATA', 'LOCALAPPDATA', 'PATHEXT', 'PROGRAMFILES', 'SYSTEMROOT', 'TEMP', 'USERPROFILE']

/** How a company network is reached: without these, an `npx` or `uvx` server behind a proxy cannot even be downloaded. */
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
  /** `env` of the server's entry. */
  readonly own: Readonly<Record<string, string>>
  readonly instance: string
  /** An administrators' scope wrote the command: it may get addresses that contain a user name or password. */
  readonly trusted: boolean
}

/** The variables of a program: what it needs to start, what the network needs, and its own. Nothing else is inherited. */
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
 * encoded may contain any character: what stands before the first `/` is then no host with a port.
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
