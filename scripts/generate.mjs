// Writes the pages of docs/reference (or of the folder given) from the schemas and tables in src and in test/matrix.
// `--check` writes nothing and fails if a page is not current.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configSchema, formatProblem, parseConfig } from '../src/config/config.ts'
import {
  describeNumbers,
  errorGroups,
  errorSections,
  toNumbers,
} from '../src/contract/error-sections/error-sections.ts'
import { toGuideTitle } from '../src/contract/error-sections/section.ts'
import { errorTable } from '../src/contract/errors.ts'
import {
  clientKinds,
  clientTitles,
  featureNames,
  features,
  notOffered,
  revisionOf,
  serverKinds,
  serverTitles,
  verdictOf,
} from '../test/matrix/table.ts'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

const patched = 'projects.NAME.servers.NAME'
const patchedIntro = `The keys of \`servers.NAME\`, all optional. A server that is new in this scope needs a complete definition. If an
earlier scope has a server of this name, missing keys are inherited: \`env\`, \`headers\`, \`timeout\` and \`tools\` merge key by key,
lists are replaced. An entry that changes \`transport\`, \`url\` or \`command\` replaces the earlier entry and inherits nothing.`

const pages = {
  'config.schema.json': () => `${JSON.stringify(configSchema(), null, 2)}\n`,
  'configuration.md': toConfigurationPage,
  'errors.md': toErrorsPage,
  'protocol.md': toProtocolPage,
}

const options = process.argv.slice(2)
const checking = options.includes('--check')
const folder = options.find((option) => !option.startsWith('--')) ?? join(root, 'docs', 'reference')
const stale = []
for (const [name, build] of Object.entries(pages)) {
  const file = join(folder, name)
  const text = build()
  const present = await readFile(file, 'utf8').catch(() => undefined)
  if (present === text) continue
  stale.push(relative(process.cwd(), file))
  if (checking) continue
  await mkdir(folder, { recursive: true })
  await writeFile(file, text)
}
for (const file of stale) console.log(checking ? `stale: ${file} (run npm run generate)` : `wrote ${file}`)
if (checking && stale.length > 0) process.exitCode = 1

function toErrorsPage() {
  const rows = Object.entries(errorTable).map(([code, { hint }]) => {
    const { http = '', rpc = '', exit = '' } = toNumbers(code)
    return [`[\`${code}\`](#${code})`, http, rpc, exit, hint]
  })
  const groups = errorGroups.map(({ title, codes }) => `## ${title}\n\n${codes.map(toErrorSection).join('\n\n')}`)
  return `# Errors

Generated from \`src/contract/error-table.ts\` and \`src/contract/error-sections\`; do not edit.

Every error has one of these codes, on every surface. Codes do not change; messages may be reworded.

- REST answers with the HTTP status and \`{ "error": { "code", "message", "hint", "docs" } }\`. \`docs\` is the path of the section
  of the code below the address of the gateway: \`/docs/errors#CODE\`. The gateway serves that page without a sign-in.
- MCP answers with a JSON-RPC error. Its \`data\` has \`code\`, \`hint\` and \`docs\`. A call of a tool that the gateway refuses gets a
  failed result instead (\`isError\`), whose text begins with the code.
- A command ends with the exit code. \`sallyport explain CODE\` prints the section of a code.

${toTable(['code', 'HTTP', 'JSON-RPC', 'exit', 'what to do'], rows)}

${groups.join('\n\n')}
`
}

function toErrorSection(code) {
  const { meaning, example, steps, guide } = errorSections[code]
  return [
    `### \`${code}\``,
    meaning,
    ...(example === undefined ? [] : [`> ${example}`]),
    `What to do:\n\n${steps.map((step) => `- ${step}`).join('\n')}`,
    `Appears as: ${describeNumbers(code)}.`,
    `Guide: [${toGuideTitle(guide)}](../guide/${guide})`,
  ].join('\n\n')
}

/** One table for each protocol revision of agents; transports with equal results share a table. */
function toProtocolPage() {
  const notes = new Map()
  const tables = clientKinds.map((client) => ({ client, text: toMatrix(client, notes) }))
  const sections = Map.groupBy(tables, ({ client, text }) => `${client.era} ${text}`)
  const written = [...sections.values()].map(([first, ...others]) => {
    const ways = [first, ...others].map(({ client }) => clientTitles[client.transport]).join(' and over ')
    return `## An agent of ${revisionOf[first.client.era]} over ${ways}\n\n${first.text}`
  })
  return `# Protocol

Generated from \`test/matrix/table.ts\`; do not edit. Every cell is a test that runs a real client, a gateway and a server
(\`test/matrix\`). A cell that says no is tested too: its test fails if the feature works.

Agents and servers speak one of two eras of MCP: the revisions with sessions (2024-11-05 to ${revisionOf.legacy}) or the stateless one
(${revisionOf.modern}). Any agent can use any server: Sallyport translates between the two eras.

- **yes**: forwarded unchanged.
- **bridged**: agent and server use different messages for this, and Sallyport translates.
- **no**: not possible; the number refers to the reason below.

${written.join('\n\n')}

## Reasons

${[...notes].map(([why, number]) => `${number}. ${toUpper(why)}.`).join('\n')}

## Not offered to agents

${notOffered.map(({ what, why }) => `- ${what}: ${why}.`).join('\n')}
`
}

function toMatrix(client, notes) {
  const rows = featureNames.map((feature) => [
    features[feature].can,
    ...serverKinds.map((server) => toCell(feature, { client, server }, notes)),
  ])
  const titles = serverKinds.map(({ era, transport }) => `${revisionOf[era]}, ${serverTitles[transport]}`)
  return toTable(['the agent can', ...titles], rows)
}

function toCell(feature, pair, notes) {
  const verdict = verdictOf(feature, pair)
  if (verdict.kind === 'possible') {
    return features[feature].differs && pair.client.era !== pair.server.era ? 'bridged' : 'yes'
  }
  if (!notes.has(verdict.why)) notes.set(verdict.why, notes.size + 1)
  return `no (${notes.get(verdict.why)})`
}

function toUpper(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

function toConfigurationPage() {
  return `# Configuration

Generated from \`src/contract/config.ts\`; do not edit. As JSON Schema: [config.schema.json](config.schema.json), or
\`npx sallyport config schema\`.

The configuration file is given by \`--config\`, else by \`SALLYPORT_CONFIG\`, else it is \`sallyport.yaml\`, \`.yml\`, \`.json\` or \`.toml\` in the current
folder, else \`sallyport.yaml\` in the data folder. All three formats have the same structure. An unknown key or a wrong value is an error
with file, line and key. With an error the gateway does not start; a running gateway keeps its configuration.

## Example

\`\`\`yaml
${toValidExample()}\`\`\`

${toSections()
  .map(
    ({ title, level, intro, rows }) =>
      `${level} ${title}\n\n${intro}${rows.length === 0 ? '' : toTable(['key', 'type', 'default', 'meaning'], rows)}`,
  )
  .join('\n\n')}
`
}

function toValidExample() {
  const example = `listen: { host: 127.0.0.1, port: 4777 }
environment: [GITHUB_TOKEN, LOG_LEVEL]     # variables that \${NAME} may read
servers:
  github:
    transport: http
    url: https://api.githubcopilot.com/mcp/
    headers: { Authorization: "Bearer \${GITHUB_TOKEN}" }
    description: Issues, pull requests, repositories
    tools:
      exclude: ["delete_*"]                # globs on the server's own names
      override: { merge_pull_request: { risk: danger } }
  files:
    transport: stdio
    command: npx
    args: ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/srv/docs"]
    env: { LOG_LEVEL: "\${LOG_LEVEL:-warn}" }
    timeout: { call: 60000 }
rules:                                     # the last match decides
  - { tools: "github_*", risk: write, action: ask }
  - { tools: "*_delete_*", action: deny }
toolsets:
  support: { servers: [github], tools: ["github_search_*"] }
projects:
  shop: { servers: { files: { args: ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/srv/shop"] } } }
agents:
  reviewer: { project: shop, servers: { github: { tools: { include: ["get_*", "list_*"] } } } }
`
  const reading = parseConfig('example.yaml', example)
  if (!reading.ok) throw new Error(reading.problems.map(formatProblem).join('\n'))
  return example
}

/** One section for each object of the schema; a repeated object refers to its first section. */
function toSections() {
  const sections = []
  const known = new Map()
  const visit = (schema, path, suffix = '') => {
    const { description: _, default: __, ...shape } = schema
    const key = JSON.stringify(shape)
    const seen = known.get(key)
    if (seen === path) return
    const title = path === '' ? 'The whole file' : `\`${path}\`${suffix}`
    const level = path.includes('.') && !/^[a-z]+\.NAME$/.test(path) ? '###' : '##'
    if (seen !== undefined || path === patched) {
      sections.push({ title, level, intro: seen === undefined ? patchedIntro : `The same as \`${seen}\`.`, rows: [] })
      known.set(key, seen ?? path)
      return
    }
    known.set(key, path)
    const rows = Object.entries(schema.properties).map(([name, field]) => toRow(name, field, schema.required ?? []))
    sections.push({ title, level, intro: '', rows })
    for (const [name, field] of Object.entries(schema.properties)) {
      visitInside(field, path === '' ? name : `${path}.${name}`)
    }
  }
  const visitInside = (field, path) => {
    if (field.properties !== undefined) visit(field, path)
    else if (field.items?.properties !== undefined) visit(field.items, `${path}[]`)
    else if (typeof field.additionalProperties === 'object') visitInside(field.additionalProperties, `${path}.NAME`)
    for (const branch of field.anyOf ?? []) if (branch.properties !== undefined) visit(branch, path)
    for (const branch of field.oneOf ?? []) visit(branch, path, `, transport \`${branch.properties.transport.const}\``)
  }
  visit(configSchema(), '')
  return sections
}

function toRow(name, field, required) {
  const standard = field.default === undefined ? '' : `\`${JSON.stringify(field.default)}\``
  return [`\`${name}\``, toType(field), required.includes(name) ? 'required' : standard, field.description ?? '']
}

function toType(field) {
  if (field.const !== undefined) return `\`${field.const}\``
  if (field.enum !== undefined) return field.enum.map((value) => `\`${value}\``).join(', ')
  if (field.anyOf !== undefined) return field.anyOf.map(toType).join(', or ')
  if (field.oneOf !== undefined)
    return field.oneOf.map(({ properties }) => `\`${properties.transport.const}\` server`).join(', ')
  if (field.type === 'array') return `list of ${toPlural(toType(field.items))}`
  if (Array.isArray(field.type)) return field.type.map((type) => toType({ type })).join(', ')
  if (field.type === 'number') return 'number'
  if (field.type === 'null') return '`null`'
  if (field.type === 'integer') return `whole number${toRange(field)}`
  if (field.type === 'boolean') return '`true` or `false`'
  if (field.type === 'string') return field.format === 'uri' ? 'address' : 'text'
  return typeof field.additionalProperties === 'object'
    ? `map of names to ${toPlural(toType(field.additionalProperties))}`
    : 'map'
}

function toPlural(type) {
  return type === 'map' ? 'maps' : type
}

/** Omits the largest safe integer, which is the maximum of every whole number. */
function toRange({ minimum, maximum }) {
  if (minimum === undefined) return ''
  return maximum === undefined || maximum === Number.MAX_SAFE_INTEGER
    ? `, at least ${minimum}`
    : `, ${minimum} to ${maximum}`
}

function toTable(titles, rows) {
  const toLine = (cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`
  return [toLine(titles), toLine(titles.map(() => '---')), ...rows.map(toLine)].join('\n')
}
