import type { Config, ScopedServer } from '../contract/config.ts'
import type { Rule } from '../contract/rule.ts'
import { type Scope, toScopeKey } from '../contract/scope.ts'
import { ServerDefinition, ServerName } from '../contract/server.ts'
import { type Path, toKey } from '../documents/values.ts'
import { nearest } from '../lib/text.ts'
import { explainIssues } from './explain.ts'
import { listLiterals } from './literals.ts'
import { findUnpinned } from './packages.ts'
import type { Finding } from './problems.ts'
import { createStack, listChains, listScopes, type MergeFault, onlyTightens, statementsOf } from './scopes.ts'
import { isOwnVariable, listTemplates, parseTemplate } from './templates.ts'
import { checkWebhooks, listWebhookNotices } from './webhooks.ts'

/** Checks that span several fields, which the schema cannot express. */
export function checkConfig(config: Config): Finding[] {
  return [
    ...checkListen(config),
    ...checkNaming(config.naming),
    ...checkDescribe(config.describe),
    ...checkEnvironment(config.environment),
    ...checkToolsets(config),
    ...checkProjects(config),
    ...checkWebhooks(config),
    ...listScopes(config).flatMap((scope) => checkRules(config, scope)),
    ...listScopes(config).flatMap((scope) => checkServers(config, scope)),
    ...checkChains(config),
  ]
}

function checkListen({ listen }: Config): Finding[] {
  const findings: Finding[] = []
  const { publicUrl, tls } = listen
  if (publicUrl !== undefined && !/^https?:\/\//i.test(publicUrl)) {
    findings.push({ path: ['listen', 'publicUrl'], message: 'must begin with https:// or http://' })
  }
  if (tls !== undefined && (tls.cert === '') !== (tls.key === '')) {
    const absent = tls.cert === '' ? 'cert' : 'key'
    findings.push({ path: ['listen', 'tls'], message: `needs both files; ${absent} is missing` })
  }
  return findings
}

/** Requires a `_` between server and tool, so that tool names of one server cannot equal those of another server. */
function checkNaming(naming: string): Finding[] {
  const parts = naming.split(/\{(?:server|tool)\}/)
  const [before = '', between = '', after = ''] = parts
  const once = naming.split('{server}').length === 2 && naming.split('{tool}').length === 2
  if (!once) return [{ path: ['naming'], message: 'must contain {server} and {tool}, each exactly once' }]
  if (!between.includes('_')) return [{ path: ['naming'], message: 'needs a _ between {server} and {tool}' }]
  if (/^[A-Za-z0-9_-]*$/.test(before + between + after)) return []
  return [{ path: ['naming'], message: 'may contain only letters, digits, _ and - besides {server} and {tool}' }]
}

const describeWords = ['server', 'tool', 'description']

function checkDescribe(describe: string): Finding[] {
  return [...describe.matchAll(/\{([^{}]*)\}/g)]
    .map(([, word = '']) => word)
    .filter((word) => !describeWords.includes(word))
    .map((word) => {
      const meant = nearest(word, describeWords)
      const message = `may contain only {server}, {tool} and {description}, not {${word}}`
      return { path: ['describe'], message, suggestion: meant === undefined ? undefined : `{${meant}}` }
    })
}

function checkEnvironment(environment: readonly string[]): Finding[] {
  return environment.flatMap((name, index): Finding[] => {
    const path = ['environment', index]
    if (isOwnVariable(name))
      return [{ path, message: 'SALLYPORT_* variables belong to the gateway and are never passed to servers' }]
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return []
    return [{ path, message: 'must be the name of one variable: letters, digits and _' }]
  })
}

/**
 * A glob may match servers that are added later. A plain name without a server is a mistake, unless a repository may
 * contain the server.
 */
function checkToolsets(config: Config): Finding[] {
  if (Object.values(config.projects).some(({ repository }) => repository !== undefined)) return []
  const known = listScopes(config).flatMap((scope) => Object.keys(statementsOf(config, scope).servers))
  return Object.entries(config.toolsets).flatMap(([name, toolset]) =>
    toolset.servers.flatMap((server, index): Finding[] => {
      if (/[*?]/.test(server) || known.includes(server)) return []
      const path = ['toolsets', name, 'servers', index]
      return [{ path, message: `no server is named ${server}`, suggestion: nearest(server, known) }]
    }),
  )
}

function checkProjects(config: Config): Finding[] {
  const known = Object.keys(config.projects)
  return Object.entries(config.agents).flatMap(([name, { project }]): Finding[] => {
    if (project === undefined || known.includes(project)) return []
    const path = ['agents', name, 'project']
    return [{ path, message: `no project is named ${project}`, suggestion: nearest(project, known) }]
  })
}

function checkRules(config: Config, scope: Scope): Finding[] {
  return statementsOf(config, scope).rules.flatMap((rule, index): Finding[] => {
    const path = [...pathOfScope(scope), 'rules', index]
    return [...checkRuleProject(config, rule, path), ...checkApprovers(config, scope, { rule, path })]
  })
}

/** A glob may match projects that are added later. A plain name without a project is a mistake. */
function checkRuleProject(config: Config, { project }: Rule, path: Path): Finding[] {
  const known = Object.keys(config.projects)
  if (project === undefined || /[*?]/.test(project) || known.includes(project)) return []
  return [
    { path: [...path, 'project'], message: `no project is named ${project}`, suggestion: nearest(project, known) },
  ]
}

/** Owners of a project write its rules: with `client` they could let an agent approve its own calls. */
function checkApprovers(config: Config, scope: Scope, { rule, path }: { rule: Rule; path: Path }): Finding[] {
  if (rule.approvers !== 'client' || !onlyTightens(config, toScopeKey(scope))) return []
  const message = `client is only allowed in scopes of administrators; ${toScopeKey(scope)} has owners or a repository: use any, other, two or group:NAME`
  return [{ path: [...path, 'approvers'], message }]
}

/** Warnings about valid settings that are probably not intended. They never reject a configuration. */
export function listNotices(config: Config, now: number): Finding[] {
  const ofScopes = listScopes(config).flatMap((scope) => [
    ...listPassed(config, scope, now),
    ...listUnpinned(config, scope),
    ...listOpenSecrets(config, scope),
    ...listWritten(config, scope),
  ])
  return [...ofScopes, ...listWebhookNotices(config)]
}

/** Warns about `secretsInArguments`, because readers of the configuration should know about the exposed secret. */
function listOpenSecrets(config: Config, scope: Scope): Finding[] {
  return Object.entries(statementsOf(config, scope).servers).flatMap(([name, server]): Finding[] => {
    if (!('secretsInArguments' in server) || server.secretsInArguments !== true) return []
    const path = [...pathOfScope(scope), 'servers', name, 'secretsInArguments']
    return [{ path, message: 'allows secrets in arguments, where every user of the machine can read them' }]
  })
}

function listWritten(config: Config, scope: Scope): Finding[] {
  return listLiterals(statementsOf(config, scope).servers, scope).map(({ path, message }) => ({
    path: [...pathOfScope(scope), ...path],
    message,
  }))
}

function listPassed(config: Config, scope: Scope, now: number): Finding[] {
  return statementsOf(config, scope).rules.flatMap(({ expires }, index): Finding[] => {
    if (expires === undefined || Date.parse(expires) > now) return []
    const path = [...pathOfScope(scope), 'rules', index, 'expires']
    return [{ path, message: 'has passed: this rule has expired' }]
  })
}

function listUnpinned(config: Config, scope: Scope): Finding[] {
  return Object.entries(statementsOf(config, scope).servers).flatMap(([name, server]): Finding[] => {
    const found = findUnpinned(server)
    if (found === undefined) return []
    const path = [...pathOfScope(scope), 'servers', name, 'args']
    return [{ path, message: `runs the latest published version of ${found}: write an exact version after its name` }]
  })
}

/** The path of a scope's settings in the file. */
export function pathOfScope(scope: Scope): Path {
  if (scope.kind === 'global') return []
  return [`${scope.kind}s`, scope.name]
}

/** Mistakes in one entry that its schema does not find. */
function findEntryFaults(server: ScopedServer): Finding[] {
  return [...checkTemplates(server), ...checkHeaders(server), ...checkVariables(server)]
}

function checkServers(config: Config, scope: Scope): Finding[] {
  return Object.entries(statementsOf(config, scope).servers).flatMap(([name, server]) =>
    findEntryFaults(server).map((finding) => ({
      ...finding,
      path: [...pathOfScope(scope), 'servers', name, ...finding.path],
    })),
  )
}

/** The reason why a definition from another file is not a server; undefined if it is one. */
export function findServerFault(name: string, server: ScopedServer): string | undefined {
  const named = ServerName.safeParse(name)
  if (!named.success) return `The name ${named.error.issues[0]?.message ?? 'is not valid'}`
  const parsed = ServerDefinition.safeParse(server)
  const findings = parsed.success
    ? findEntryFaults(server)
    : explainIssues(parsed.error.issues, server, ['servers', name])
  const [first] = findings
  if (first !== undefined) return `${toKey(first.path) || 'The entry'} ${first.message}`
  if (server.cwd === undefined || /^(\/|[A-Za-z]:[\\/])/.test(server.cwd)) return undefined
  return 'cwd must be an absolute path'
}

function checkTemplates(server: ScopedServer): Finding[] {
  const findings = listTemplates(server).flatMap(([path, text]): Finding[] => {
    const template = parseTemplate(text)
    return template.ok ? [] : [{ path, message: template.message }]
  })
  if (!server.cwd?.includes('${')) return findings
  return [
    ...findings,
    {
      path: ['cwd'],
      message: 'must not contain a template; templates are allowed in command, args, env, url and headers',
    },
  ]
}

function checkHeaders({ headers = {} }: ScopedServer): Finding[] {
  const seen = new Set<string>()
  return Object.entries(headers).flatMap(([name, value]): Finding[] => {
    const path = ['headers', name]
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return [{ path, message: 'is not a valid header name' }]
    if (/[\r\n\0]/.test(value)) return [{ path, message: 'must be one line' }]
    const twice = seen.has(name.toLowerCase())
    seen.add(name.toLowerCase())
    return twice ? [{ path, message: 'is a duplicate; header names are not case-sensitive' }] : []
  })
}

function checkVariables({ env = {} }: ScopedServer): Finding[] {
  return Object.keys(env)
    .filter((name) => name === '' || /[=\0]/.test(name))
    .map((name) => ({ path: ['env', name], message: 'is not a valid variable name' }))
}

/** Every possible chain of scopes must result in complete servers. */
function checkChains(config: Config): Finding[] {
  const findings: Finding[] = []
  const stack = createStack(config, (fault) => findings.push(...explainFault(fault)))
  for (const scopes of listChains(config)) stack(scopes)
  return findings
}

function explainFault(fault: MergeFault): Finding[] {
  const { name, scope, statement, before, candidate, replaces, issues } = fault
  const at = [...pathOfScope(scope), 'servers', name]
  const names = [...before.keys()]
  const identifies = statement.transport ?? statement.command ?? statement.url
  if (!before.has(name) && identifies === undefined) {
    const message = 'overrides a server that no earlier scope defines'
    return [{ path: at, message, suggestion: nearest(name, names) }]
  }
  const why = replaces ? '; an entry that changes transport, url or command replaces the whole earlier entry' : ''
  return explainIssues(issues, candidate, ['servers', name]).map((finding) => ({
    ...finding,
    path: [...at, ...finding.path],
    message: finding.message + why,
  }))
}
