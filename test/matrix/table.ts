/** What is tried between every kind of agent and every kind of server, as data: the tests and the page come from it. */

export type Era = 'legacy' | 'modern'
export type ClientTransport = 'http' | 'stdio'
export type ServerTransport = 'stdio' | 'json' | 'sse' | 'old-sse'

export type ClientKind = { readonly era: Era; readonly transport: ClientTransport }
export type ServerKind = { readonly era: Era; readonly transport: ServerTransport }
export type Pair = { readonly client: ClientKind; readonly server: ServerKind }

export const revisionOf: Readonly<Record<Era, string>> = { legacy: '2025-11-25', modern: '2026-07-28' }

export const clientKinds: readonly ClientKind[] = [
  { era: 'legacy', transport: 'http' },
  { era: 'legacy', transport: 'stdio' },
  { era: 'modern', transport: 'http' },
  { era: 'modern', transport: 'stdio' },
]

export const serverKinds: readonly ServerKind[] = [
  { era: 'legacy', transport: 'stdio' },
  { era: 'legacy', transport: 'json' },
  { era: 'legacy', transport: 'sse' },
  { era: 'legacy', transport: 'old-sse' },
  { era: 'modern', transport: 'stdio' },
  { era: 'modern', transport: 'json' },
  { era: 'modern', transport: 'sse' },
]

export const clientTitles: Readonly<Record<ClientTransport, string>> = {
  http: 'Streamable HTTP',
  stdio: '`sallyport stdio`',
}

export const serverTitles: Readonly<Record<ServerTransport, string>> = {
  stdio: 'stdio',
  json: 'HTTP with answers in JSON',
  sse: 'HTTP with answers as streams',
  'old-sse': 'HTTP+SSE',
}

/** Ways of the protocol that agents do not find here. */
export const notOffered: readonly { readonly what: string; readonly why: string }[] = [
  {
    what: 'HTTP+SSE',
    why: 'the protocol has given it up in favour of Streamable HTTP',
  },
]

/** What an agent can do, after "it can"; `differs` where the two eras write it differently on the wire. */
type FeatureEntry = { readonly can: string; readonly differs: boolean }

const alike = (can: string): FeatureEntry => ({ can, differs: false })
const different = (can: string): FeatureEntry => ({ can, differs: true })

export const features = {
  'tools-list': alike('list the tools'),
  'tools-call': alike('call a tool'),
  'tools-contents': alike('get text, images, audio and embedded resources from a tool'),
  'tools-structured': alike('get structured content that fits the output schema'),
  'tools-failure': alike('read why a tool failed'),
  'tools-icons': alike('see the icons of a tool'),
  'tools-annotations': alike('see the title, the annotations and the `_meta` of a tool'),
  'meta-sent': alike('send `_meta` with a `traceparent` along with a call'),
  'meta-received': alike('get `_meta` with a `traceparent` along with a result'),
  'resources-list': alike('list the resources'),
  'resources-text': alike('read a resource of text'),
  'resources-binary': alike('read a resource of bytes'),
  'resources-templates': alike('list the templates of resources and read one'),
  'resources-missing': different('learn that a resource is not there, by the number of its own era'),
  'prompts-list': alike('list the prompts'),
  'prompts-get': alike('get a prompt with arguments'),
  pages: alike('page through a long list'),
  completion: alike('complete an argument of a prompt and a variable of a template'),
  progress: alike('hear the progress of a call'),
  logging: different('hear what the server logs during a call'),
  'logging-level': different('choose from which level on it hears what the server logs'),
  cancellation: different('cancel a call'),
  'tools-changed': different('hear that the list of tools has changed'),
  'prompts-changed': different('hear that the list of prompts has changed'),
  'resources-changed': different('hear that the list of resources has changed'),
  'resources-followed': different('follow a resource'),
  'resources-unfollowed': different('stop following a resource'),
  sampling: different('answer a request for sampling'),
  'elicitation-form': different('fill in a form'),
  'elicitation-url': different('be sent to another address'),
  'elicitation-complete': different('hear that what it was sent elsewhere for is done'),
  roots: different('tell its roots'),
  'roots-changed': different('tell that its roots have changed'),
  'questions-together': different('answer several questions at once'),
  'questions-elsewhere': different('answer the questions of a prompt and of a resource'),
  'questions-lacking': different('learn which capability it lacks for a question'),
  'questions-unprompted': different('answer what the server asks outside of any call'),
  ping: alike('send a ping'),
  'cache-hints': different('learn how long it may keep a list, and that it is for itself only'),
  instructions: different('read the instructions of the server at `/mcp/s/<server>`'),
  'extensions-offered': different('see the extensions of the server by name'),
  'extensions-declared': different('tell the server its own extensions by name'),
  'parameter-headers': different('call a tool that wants arguments repeated in headers (`Mcp-Param-*`)'),
  tasks: different('let a call run as a task and come back for its result'),
} as const satisfies Record<string, FeatureEntry>

export type FeatureName = keyof typeof features

export const featureNames = Object.keys(features).filter((name): name is FeatureName => name in features)

/** Some cells, and what is to be said of them. What is left out of the choice means all. */
export type Cells = {
  readonly features: readonly FeatureName[]
  readonly client?: Partial<ClientKind>
  readonly server?: { readonly era?: Era; readonly transports?: readonly ServerTransport[] }
  readonly why: string
  /** What a try ends with. Anything else is a fault of the try or of the gateway, and fails the test. */
  readonly fails: RegExp
}

/** What was waited for never came. */
export const silence = /^Nothing found within \d+ ms$/
const unknownToEra = /is not supported by the negotiated protocol version/

const differingTasks =
  'the tasks of the two eras differ in who decides on one and in how its result is fetched; a tool that can do without one is answered when it is done'

/** What cannot be had, and why. A cell that works all the same fails its test: it must leave this list. */
export const impossible: readonly Cells[] = [
  {
    features: ['progress', 'logging', 'logging-level'],
    server: { era: 'modern', transports: ['json'] },
    why: 'a stateless server that answers in JSON has no stream on which to say anything before its answer',
    fails: silence,
  },
  {
    features: ['elicitation-complete'],
    client: { era: 'modern' },
    why: 'the stateless revision has no such notice: the agent repeats its call when the user is done',
    fails: silence,
  },
  {
    features: ['elicitation-complete'],
    server: { era: 'modern' },
    why: 'a stateless server does not tell when it is done',
    fails: silence,
  },
  {
    features: ['roots-changed'],
    client: { era: 'modern' },
    why: 'the stateless revision has no such notice: a server asks for the roots when it needs them',
    fails: unknownToEra,
  },
  {
    features: ['roots-changed'],
    client: { era: 'legacy' },
    why: 'one link to a server is shared by many agents: the news of one is not for the others, and a server that needs roots asks for them in a call',
    fails: silence,
  },
  {
    features: ['questions-unprompted'],
    server: { era: 'legacy' },
    why: 'one link to a server is shared by many agents: outside of a call nobody knows which of them is asked. The server gets an error; for roots, an empty list',
    fails: /^expected 'refused .*' to be 'answered /,
  },
  {
    features: ['questions-unprompted'],
    server: { era: 'modern' },
    why: 'a stateless server asks in answers to calls only',
    fails: silence,
  },
  {
    features: ['ping'],
    client: { era: 'modern' },
    why: 'the stateless revision has no ping',
    fails: unknownToEra,
  },
  {
    features: ['cache-hints'],
    client: { era: 'legacy' },
    why: 'the revisions with sessions have no such hints; what a server says of it in the answer to a reading is passed on and harms nobody',
    fails: /^expected undefined to be 'private'/,
  },
  {
    features: ['extensions-declared'],
    server: { era: 'legacy' },
    why: 'one link to a server is shared by many agents, and with sessions a client declares itself once, when the link opens',
    fails: /^expected undefined to match object /,
  },
  {
    features: ['tasks'],
    client: { era: 'legacy' },
    server: { era: 'modern' },
    why: differingTasks,
    fails: /^expected undefined to be type of 'string'/,
  },
  {
    features: ['tasks'],
    client: { era: 'modern' },
    server: { era: 'legacy' },
    why: differingTasks,
    fails: /^expected undefined to be type of 'string'/,
  },
]

/** What should work and does not. A cell that works again fails its test: it must leave this list. */
export const defects: readonly Cells[] = []

export type Verdict =
  | { readonly kind: 'possible' }
  | { readonly kind: 'impossible' | 'defect'; readonly why: string; readonly fails: RegExp }

export function verdictOf(feature: FeatureName, pair: Pair): Verdict {
  const impossibility = impossible.find((cells) => holds(cells, feature, pair))
  if (impossibility) return { kind: 'impossible', why: impossibility.why, fails: impossibility.fails }
  const defect = defects.find((cells) => holds(cells, feature, pair))
  return defect ? { kind: 'defect', why: defect.why, fails: defect.fails } : { kind: 'possible' }
}

export function holds({ features: chosen, client, server }: Cells, feature: FeatureName, pair: Pair): boolean {
  return (
    chosen.includes(feature) &&
    (client?.era ?? pair.client.era) === pair.client.era &&
    (client?.transport ?? pair.client.transport) === pair.client.transport &&
    (server?.era ?? pair.server.era) === pair.server.era &&
    (server?.transports ?? [pair.server.transport]).includes(pair.server.transport)
  )
}

/** Features that no cell has: their drives are seen to work between a client and a server without a gateway. */
export function neverPossible(): FeatureName[] {
  const pairs = clientKinds.flatMap((client) => serverKinds.map((server) => ({ client, server })))
  return featureNames.filter((feature) => pairs.every((pair) => verdictOf(feature, pair).kind !== 'possible'))
}
