import { describe, expect, it } from 'vitest'
import { type ConfigEdit, parseConfig } from '../../src/config/config.ts'
import { editText } from '../../src/config/edit.ts'
import { ServerDefinition } from '../../src/contract/server.ts'

/** Written by somebody with habits: trailing spaces, columns, tabs in comments, quotes of both kinds, anchors, long text. */
const yaml = `# yaml-language-server: $schema=sallyport.schema.json
---
#	Ask Kim.   
listen:   { host: 127.0.0.1,port: 4777 }   


environment: [ A,B ,  C ]	# three
servers:   
  # Documents
  files:   # local
    transport:   stdio
    command:     npx
    args:        ['-y', "files@1", files]   # pinned
    env: &quiet
      LEVEL:   'warn'
    description: >-
      Long text
      over two lines

    # enabled: false


  other: {transport: stdio,command: "x",   env: *quiet } # short

  github :
    transport: http
    url:  'https://api.example/mcp'   
    headers:
        Authorization: "Bearer \${TOKEN}"
  # not yet:
  #   transport: http

# Rules follow.   
rules:
- {tools: "*",action: ask}   # for now
-   action:   deny
    tools: [ "a_*",
             "b_*" ]
toolsets: {}
`

const json = `{
  "listen":   { "host": "127.0.0.1","port": 4777 },   
	"environment": [ "A","B" ,  "C" ],


    "servers": {
      "files": {"transport": "stdio", "command": "npx",   "args": ["-y",
          "files@1"] },
      "github": {
         "transport" : "http",
         "url":  "https://api.example/mcp"
      }
  },
  "rules": [ {"tools": "*",  "action": "ask"} ]
}
`

const toml = `#	Ask Kim.   
environment   = [ "A","B" ,  "C" ]	# three


[servers.files]   # local
transport =   "stdio"   
  command  = 'npx'
args = ["-y",
   "files@1" ]   # pinned
enabled = true   # since May

[servers.files.env]
LEVEL = 'warn'

[servers . github]
transport = "http"
url = "https://api.example/mcp"   

# Rules follow.   
[[rules]]
tools =  "*"
action = "ask"   # for now
`

const files = { 'a.yaml': yaml, 'a.json': json, 'a.toml': toml }

/** The same text as other programs and systems save it. */
const habits: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'with CRLF': (text) => text.replaceAll('\n', '\r\n'),
  'with both line ends': (text) => {
    let line = 0
    return text.replace(/\n/g, () => (line++ % 3 === 0 ? '\r\n' : '\n'))
  },
  'without a line end at its end': (text) => text.replace(/\n$/, ''),
}

const cases = Object.entries(files).flatMap(([file, text]) =>
  Object.entries(habits).map(([habit, change]): [string, string, string] => [file, habit, change(text)]),
)

function edit(file: string, text: string, change: ConfigEdit): string {
  const reading = parseConfig(file, text)
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  return editText({ file, text, ...reading }, change)
}

const notes = ServerDefinition.parse({ transport: 'stdio', command: 'uvx', args: ['notes'], env: { A: '1' } })
const reviewer = { kind: 'agent', name: 'reviewer' } as const

/** What stands in `after` where `before` has nothing; undefined if anything else differs. */
function findInserted(before: string, after: string): string | undefined {
  let start = 0
  while (start < before.length && before[start] === after[start]) start++
  let end = 0
  while (end < before.length - start && before.at(-1 - end) === after.at(-1 - end)) end++
  return start + end === before.length ? after.slice(start, after.length - end) : undefined
}

describe.each(cases)('an edit of %s, %s', (file, _habit, text) => {
  it('adds a server without touching another byte, and takes it away again', () => {
    const added = edit(file, text, { kind: 'add-server', name: 'notes', definition: notes })
    expect(findInserted(text, added)).toMatch(/notes[\s\S]*stdio[\s\S]*uvx/)
    expect(edit(file, added, { kind: 'remove-server', name: 'notes' })).toBe(text)
  })

  it('switches a server off and on again', () => {
    const off = edit(file, text, { kind: 'enable-server', name: 'github', enabled: false })
    expect(findInserted(text, off)).toMatch(/^,?\s*"?enabled"? ?[:=] false\s*$/)
    const on = edit(file, off, { kind: 'enable-server', name: 'github', enabled: true })
    const at = off.lastIndexOf('false')
    expect(on).toBe(`${off.slice(0, at)}true${off.slice(at + 'false'.length)}`)
  })

  it('sets risks beside everything else', () => {
    const set = edit(file, text, { kind: 'set-risks', name: 'github', risks: { read_file: 'read' } })
    expect(findInserted(text, set)).toMatch(/override[\s\S]*read_file[\s\S]*risk/)
    const raised = edit(file, set, { kind: 'set-risks', name: 'github', risks: { read_file: 'write' } })
    expect(raised).toBe(set.replace(/(risk"? ?[:=] "?)read/, '$1write'))
  })

  it('opens a scope without touching another byte', () => {
    const off = edit(file, text, { kind: 'enable-server', name: 'files', enabled: false, scope: reviewer })
    expect(findInserted(text, off)).toMatch(/agents[\s\S]*reviewer[\s\S]*servers[\s\S]*files[\s\S]*enabled/)
  })
})

describe('a YAML file', () => {
  it('gets a new server behind the last one, before what is commented out', () => {
    const added = edit('a.yaml', yaml, { kind: 'add-server', name: 'notes', definition: notes })
    const block = '  notes:\n    transport: stdio\n    command: uvx\n    args: [notes]\n    env:\n      A: "1"\n'
    expect(added).toBe(yaml.replace('  # not yet:\n', `${block}  # not yet:\n`))
  })

  it('gets a new field of a server behind its last one', () => {
    const off = edit('a.yaml', yaml, { kind: 'enable-server', name: 'files', enabled: false })
    expect(off).toBe(yaml.replace('over two lines\n', 'over two lines\n    enabled: false\n'))
    const inline = edit('a.yaml', yaml, { kind: 'enable-server', name: 'other', enabled: false })
    expect(inline).toBe(yaml.replace('*quiet }', '*quiet, enabled: false }'))
  })

  it('keeps the comment beside a value that changes, and the quotes', () => {
    const text = 'servers:\n  a:\n    transport: stdio\n    command:   "x"   # mine\n    enabled: true    # since May\n'
    expect(edit('a.yaml', text, { kind: 'enable-server', name: 'a', enabled: false })).toBe(
      text.replace('true    #', 'false    #'),
    )
    const definition = ServerDefinition.parse({ transport: 'stdio', command: 'y' })
    expect(edit('a.yaml', text, { kind: 'set-server', name: 'a', definition })).toBe(text.replace('"x"', '"y"'))
  })

  it('loses a server with the comment above it, and is otherwise the same', () => {
    const less = edit('a.yaml', yaml, { kind: 'remove-server', name: 'github' })
    const from = yaml.indexOf('  github :')
    const to = yaml.indexOf('  # not yet:')
    expect(less).toBe(yaml.slice(0, from) + yaml.slice(to))
  })

  it('keeps rules that stay as they are written', () => {
    const text = yaml.replace('toolsets: {}\n', '')
    const reading = parseConfig('a.yaml', text)
    if (!reading.ok) throw new Error('not valid')
    const [ask, deny] = reading.config.rules
    if (!ask || !deny) throw new Error('no rules')
    const swapped = edit('a.yaml', text, { kind: 'set-rules', rules: [deny, ask] })
    const [first, second] = [text.indexOf('- {tools'), text.indexOf('-   action')]
    expect(swapped).toBe(text.slice(0, first) + text.slice(second) + text.slice(first, second))
    expect(edit('a.yaml', swapped, { kind: 'set-rules', rules: [ask, deny] })).toBe(text)
  })
})

describe('a TOML file', () => {
  it('keeps the comment beside a value that changes', () => {
    expect(edit('a.toml', toml, { kind: 'enable-server', name: 'files', enabled: false })).toBe(
      toml.replace('enabled = true   # since May', 'enabled = false   # since May'),
    )
  })
})
