import { describe, expect, it } from 'vitest'
import type { ConfigEdit } from '../../src/config/config.ts'
import type { ScopedServer } from '../../src/contract/config.ts'
import { globalScope, type Scope, toScope } from '../../src/contract/scope.ts'
import { by, configOf, createFolder, startStore } from './support.ts'

const yaml = `# Our gateway
servers:
  # Documents of the team
  files:
    transport: stdio # local
    command: npx

# Nothing else
naming: "{server}_{tool}"
`
const json = '{\n  "servers": {\n    "files": { "transport": "stdio", "command": "npx" }\n  }\n}\n'
const toml = '# Our gateway\n[servers.files] # local\ntransport = "stdio"\ncommand = "npx"\n'
const texts = { 'sallyport.yaml': yaml, 'sallyport.json': json, 'sallyport.toml': toml }

const reviewer = toScope('agent:reviewer')

function add(name: string, scope: Scope = globalScope, definition: ScopedServer = {}, replaces = false) {
  const whole = { transport: 'http' as const, url: `https://${name}.example/mcp`, ...definition }
  return { name, scope, definition: whole, replaces }
}

function edit(servers: ReturnType<typeof add>[], environment: string[] = []): ConfigEdit {
  return { kind: 'add-servers', servers, environment, from: ['a test'] }
}

describe.each(Object.entries(texts))('several servers in one change of %s', (name, text) => {
  it('are added to several scopes, and every line that was there stays', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write(name, text))
    const servers = [add('a'), add('b'), add('c', reviewer), add('a', reviewer, { url: 'https://other.example' })]
    await running.store.change(edit(servers, ['TOKEN']), { by })
    const after = await folder.read(name)
    const config = configOf(after, name)
    expect(Object.keys(config.servers)).toEqual(['files', 'a', 'b'])
    expect(config.agents.reviewer?.servers).toEqual({
      c: { transport: 'http', url: 'https://c.example/mcp' },
      a: { transport: 'http', url: 'https://other.example' },
    })
    expect(config.environment).toEqual(['TOKEN'])
    for (const line of text.split('\n').filter((each) => each.includes('#'))) expect(after).toContain(line)
    expect(running.heard.map((heard) => heard.name)).toEqual(['config-changed'])
  })

  it('keep a default that overrides a server of an earlier scope in the same change', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write(name, text))
    const off = { enabled: false, url: 'https://a.example' }
    const on = { enabled: true, url: 'https://a.example' }
    await running.store.change(edit([add('a', globalScope, off), add('a', reviewer, on)]), { by })
    const { servers } = running.store.effectiveIn(reviewer)
    expect(servers.get('a')?.definition.enabled).toBe(true)
  })

  it('are all refused if one exists, unless that one is to be replaced', async () => {
    await using folder = await createFolder()
    await using running = await startStore(await folder.write(name, text))
    const change = running.store.change(edit([add('a'), add('files')]), { by })
    await expect(change).rejects.toMatchObject({ code: 'server-exists' })
    expect(await folder.read(name)).toBe(text)
    await running.store.change(edit([add('a'), add('files', globalScope, {}, true)]), { by })
    expect(running.store.current().servers.files).toMatchObject({ url: 'https://files.example/mcp' })
  })
})

it('adds two hundred servers to a YAML file with comments', async () => {
  await using folder = await createFolder()
  await using running = await startStore(await folder.write('sallyport.yaml', yaml))
  const servers = Array.from({ length: 200 }, (_, index) => add(`server${index}`))
  await running.store.change(edit(servers), { by })
  const after = await folder.read('sallyport.yaml')
  expect(Object.keys(configOf(after, 'sallyport.yaml').servers)).toHaveLength(201)
  expect(after.startsWith(yaml.slice(0, yaml.indexOf('\n\n')))).toBe(true)
})
