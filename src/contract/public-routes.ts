/** A route that needs neither a token nor a sign-in. */
export type PublicRoute = {
  readonly methods: readonly string[]
  readonly path: RegExp
  /** What shows that the caller may use it. */
  readonly proof: string
  /** What limits the load that a caller can cause. */
  readonly limit: string
  /** The most that a caller can learn. */
  readonly reveals: string
}

const reading = ['GET', 'HEAD']

/** Every route that needs neither a token nor a sign-in. A request for anything else is authenticated first. */
export const publicRoutes = {
  live: {
    methods: reading,
    path: /^\/livez$/,
    proof: 'none',
    limit: 'a constant answer',
    reveals: 'that the process runs',
  },
  ready: {
    methods: reading,
    path: /^\/readyz$/,
    proof: 'none',
    limit: 'a look at memory',
    reveals: 'whether the gateway can serve',
  },
  proof: {
    methods: reading,
    path: /^\/proof$/,
    proof: 'a challenge of 32 bytes',
    limit: 'one keyed hash',
    reveals: 'that the gateway knows the token of its data folder, and its address',
  },
  signIn: {
    methods: ['POST'],
    path: /^\/api\/sign-in$/,
    proof: 'name and password, from a page of the gateway',
    limit: '16 KiB; after a few wrong passwords a wait for the name and for the address',
    reveals: 'whether name and password are correct',
  },
  setupState: {
    methods: reading,
    path: /^\/setup\/state$/,
    proof: 'none',
    limit: 'a look at memory',
    reveals: 'whether an administrator exists',
  },
  setup: {
    methods: ['GET', 'HEAD', 'POST'],
    path: /^\/setup$/,
    proof: 'the one-time code of the setup link',
    limit: '16 KiB; the code has 256 random bits and is used once',
    reveals: 'a form',
  },
  pages: {
    methods: reading,
    path: /^\/(sign-in|approvals(\/[A-Za-z0-9_-]{1,64})?)?$/,
    proof: 'none',
    limit: 'files in memory',
    reveals: 'the pages of the dashboard, which contain no data',
  },
  errorDocs: {
    methods: reading,
    path: /^\/docs\/errors$/,
    proof: 'none',
    limit: 'a page in memory, made once',
    reveals: 'the error codes of this version, with what to do about each',
  },
  files: {
    methods: reading,
    path: /^\/(assets\/[A-Za-z0-9_.-]+|(icon|waiting-([1-9]|many))\.svg|theme\.js)$/,
    proof: 'none',
    limit: 'files in memory',
    reveals: 'the program of the dashboard',
  },
} as const satisfies Record<string, PublicRoute>

export type PublicRouteName = keyof typeof publicRoutes

const routes: readonly (readonly [string, PublicRoute])[] = Object.entries(publicRoutes)

export function findPublicRoute(method: string | undefined, path: string): PublicRouteName | undefined {
  const found = routes.find(([, route]) => route.path.test(path) && route.methods.includes(method ?? ''))
  return found && isPublicRouteName(found[0]) ? found[0] : undefined
}

function isPublicRouteName(name: string): name is PublicRouteName {
  return Object.hasOwn(publicRoutes, name)
}
