#!/usr/bin/env node
// A small MCP server over standard input and output: a notebook in memory.
// It needs only Node, so that a new gateway can always connect to it, and it has tools of each risk.

import { createInterface } from 'node:readline'

const protocolVersions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const serverInfo = { name: 'demo-notebook', title: 'Demo notebook', version: '1.0.0' }
const instructions =
  'A notebook in memory with a few notes about Sallyport. Start with list_notes. All changes are lost when the server stops.'

const limits = { notes: 200, name: 64, text: 10_000 }

const notes = new Map([
  [
    'welcome',
    'This notebook is a demo server behind Sallyport. The gateway received your request, found the tool, checked the rules, wrote the audit, and then sent the request here. The notes "risk", "rules" and "record" explain these steps.',
  ],
  [
    'names',
    'The gateway offers each tool under a public name: the name of the server, an underscore, the name of the tool. Two servers can both have a tool named search, and both can be called.',
  ],
  [
    'risk',
    'Every tool has a risk: read, write or danger. Here list_notes, read_note and search_notes read, write_note writes, and delete_note is danger. The gateway reads the risk from the annotations of this server, because the configuration trusts them. An administrator can also set the risk of any tool.',
  ],
  [
    'rules',
    'Without rules, reading calls are allowed and all other calls require approval. A person approves them on the dashboard or with sallyport approvals watch. Try it: call write_note. A rule in sallyport.yaml can allow such calls without approval, for example: rules: [{ server: demo, risk: write, action: allow }]',
  ],
  [
    'record',
    'Each call is recorded in the audit: the caller, the tool, the arguments, the decision and the result. To see the entries, run sallyport audit list. A call that may change something is recorded before it is sent to the server.',
  ],
  [
    'next-step',
    'Add your own server: sallyport servers add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /srv/docs. Its tools appear at once, without a restart of agents.',
  ],
])

const noteName = {
  type: 'string',
  minLength: 1,
  maxLength: limits.name,
  description: 'Name of the note, as list_notes shows it',
}

const tools = [
  {
    name: 'list_notes',
    title: 'List notes',
    description: 'Lists the names of all notes with the first words of each. Use it first, to learn which notes exist.',
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: () => overview([...notes], 'The notebook is empty.'),
  },
  {
    name: 'read_note',
    title: 'Read a note',
    description: 'Returns the whole text of one note.',
    inputSchema: {
      type: 'object',
      properties: { name: noteName },
      required: ['name'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: ({ name }) => notes.get(name) ?? noSuchNote(name),
  },
  {
    name: 'search_notes',
    title: 'Search notes',
    description:
      'Finds the notes whose name or text contains the given words, in any order and without regard to case. Returns a name and the first words for each.',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, maxLength: 200, description: 'Words that must all occur' },
      },
      required: ['query'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: ({ query }) => {
      const words = query.toLowerCase().split(/\s+/)
      const found = [...notes].filter(([name, text]) => {
        const whole = `${name} ${text}`.toLowerCase()
        return words.every((word) => whole.includes(word))
      })
      return overview(found, `No note contains all of: ${query}`)
    },
  },
  {
    name: 'write_note',
    title: 'Write a note',
    description:
      'Adds a note. If a note of that name exists, the text is added at its end as a new line; existing text is not changed.',
    inputSchema: {
      type: 'object',
      properties: {
        name: { ...noteName, description: 'Name of the note to add or to continue' },
        text: { type: 'string', minLength: 1, maxLength: limits.text, description: 'Text to add' },
      },
      required: ['name', 'text'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    run: ({ name, text }) => {
      const before = notes.get(name)
      if (before === undefined && notes.size >= limits.notes) throw new ToolFailure('The notebook is full.')
      const after = before === undefined ? text : `${before}\n${text}`
      if (after.length > limits.text) throw new ToolFailure(`A note can have at most ${limits.text} characters.`)
      notes.set(name, after)
      return before === undefined ? `Added the note "${name}".` : `Continued the note "${name}".`
    },
  },
  {
    name: 'delete_note',
    title: 'Delete a note',
    description: 'Removes one note permanently.',
    inputSchema: {
      type: 'object',
      properties: { name: noteName },
      required: ['name'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    run: ({ name }) => (notes.delete(name) ? `Deleted the note "${name}".` : noSuchNote(name)),
  },
]

/** A failure of the tool, returned as a result for the model, not as a protocol error. */
class ToolFailure extends Error {}

/** Answered with a JSON-RPC error. */
class RequestError extends Error {
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersions.includes(protocolVersion) ? protocolVersion : protocolVersions.at(-1),
    capabilities: { tools: {} },
    serverInfo,
    instructions,
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: tools.map(({ run, ...definition }) => definition) }),
  'tools/call': callTool,
}

function callTool({ name, arguments: given = {} }) {
  const tool = tools.find((candidate) => candidate.name === name)
  if (tool === undefined) throw new RequestError(-32602, `Unknown tool: ${name}`)
  try {
    checkArguments(tool.inputSchema, given)
    return { content: [{ type: 'text', text: tool.run(given) }], isError: false }
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  }
}

/** Checks only the JSON Schema keywords that the schemas above use. */
function checkArguments({ properties, required = [] }, given) {
  if (!isObject(given)) throw new ToolFailure('Arguments must be an object.')
  const missing = required.find((key) => !Object.hasOwn(given, key))
  if (missing !== undefined) throw new ToolFailure(`The argument "${missing}" is missing.`)
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(properties, key)) throw new ToolFailure(`The argument "${key}" is unknown.`)
    const { minLength, maxLength } = properties[key]
    if (typeof value !== 'string') throw new ToolFailure(`The argument "${key}" must be a string.`)
    if (value.length < minLength || value.length > maxLength) {
      throw new ToolFailure(`The argument "${key}" must have ${minLength} to ${maxLength} characters.`)
    }
  }
}

/** The answer to one message; undefined for notifications and answers. */
function answer(message) {
  if (!isObject(message) || message.jsonrpc !== '2.0') return failure(null, -32600, 'Not a JSON-RPC 2.0 message')
  if (!Object.hasOwn(message, 'method')) return undefined // an unexpected answer
  if (!Object.hasOwn(message, 'id')) return undefined // a notification
  const { id, method, params = {} } = message
  if (typeof method !== 'string') return failure(id, -32600, 'The method must be a string')
  if (!Object.hasOwn(methods, method)) return failure(id, -32601, `Unknown method: ${method}`)
  if (!isObject(params)) return failure(id, -32602, 'The params must be an object')
  try {
    return { jsonrpc: '2.0', id, result: methods[method](params) }
  } catch (error) {
    if (error instanceof RequestError) return failure(id, error.code, error.message)
    return failure(id, -32603, 'Internal error')
  }
}

function failure(id, code, message) {
  return { jsonrpc: '2.0', id, error: { code, message } }
}

function receive(line) {
  if (line.trim() === '') return
  let message
  try {
    message = JSON.parse(line)
  } catch {
    return send(failure(null, -32700, 'Not JSON'))
  }
  send(Array.isArray(message) && message.length > 0 ? answerBatch(message) : answer(message))
}

/** The protocol revision 2025-03-26 requires servers to accept several messages in one line. */
function answerBatch(messages) {
  const answers = messages.map(answer).filter((one) => one !== undefined)
  return answers.length > 0 ? answers : undefined
}

function send(message) {
  if (message !== undefined) process.stdout.write(`${JSON.stringify(message)}\n`)
}

function noSuchNote(name) {
  throw new ToolFailure(`There is no note "${name}". Use list_notes to see all notes.`)
}

function overview(entries, whenEmpty) {
  if (entries.length === 0) return whenEmpty
  return entries.map(([name, text]) => `${name}: ${firstWords(text)}`).join('\n')
}

function firstWords(text) {
  return text.length > 60 ? `${text.slice(0, 60).trimEnd()}…` : text
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

process.stdout.on('error', () => process.exit(0)) // the reader closed the pipe
createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }).on('line', receive)
// Only standard input keeps the process alive, so the process ends with it.
