import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { toRegistryServer } from '../../src/gallery/registry-entry.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { addPerson, firstAdministrator, type TestPerson } from '../support/people.ts'

type Fields = Record<string, unknown>
const official = (status: string) => ({ 'io.modelcontextprotocol.registry/official': { status, isLatest: true } })
const item = (server: Fields, status = 'active') => ({
  server: { name: 'io.github.ada/notes', version: '1.2.3', description: 'Keeps notes.', ...server },
  _meta: official(status),
})
const npm = (more: Fields = {}) => ({
  registryType: 'npm',
  identifier: '@ada/notes',
  version: '1.2.3',
  transport: { type: 'stdio' },
  ...more,
})
const remote = (more: Fields = {}) => ({ type: 'streamable-http', url: 'https://notes.example.com/mcp', ...more })

function convert(server: Fields) {
  const found = toRegistryServer(item(server))
  if (found === undefined) throw new Error('not a server')
  return found
}

describe('a server of the registry', () => {
  it.each([
    ['npm', npm(), { command: 'npx', args: ['-y', '@ada/notes@1.2.3'] }],
    [
      'PyPI',
      npm({ registryType: 'pypi', identifier: 'ada_notes', version: '2.0' }),
      { command: 'uvx', args: ['ada_notes==2.0'] },
    ],
    [
      'a container',
      npm({
        registryType: 'oci',
        identifier: 'ghcr.io/ada/notes',
        version: '1.2.3',
        environmentVariables: [{ name: 'LEVEL' }],
      }),
      { command: 'docker', args: ['run', '-i', '--rm', '-e', 'LEVEL', 'ghcr.io/ada/notes:1.2.3'] },
    ],
    [
      'a container with its version in the name',
      npm({ registryType: 'oci', identifier: 'docker.io/ada/notes:4.5.0', version: undefined }),
      { command: 'docker', args: ['run', '-i', '--rm', 'docker.io/ada/notes:4.5.0'] },
    ],
  ])('from %s runs in its exact version', (_kind, wanted, definition) => {
    expect(convert({ packages: [wanted] })).toMatchObject({
      unsupported: [],
      connections: [{ ...definition, transport: 'stdio' }],
    })
  })

  it('asks for headers and variables under names that begin with its own name', () => {
    const headers = [
      { name: 'Authorization', value: 'Bearer {token}', variables: { token: { isRequired: true, isSecret: true } } },
      { name: 'X-Team', description: 'Team', isRequired: true },
    ]
    expect(
      convert({ remotes: [remote({ headers, url: 'https://notes.example.com/{room}/mcp', variables: { room: {} } })] }),
    ).toMatchObject({
      connections: [
        {
          url: 'https://notes.example.com/${IO_GITHUB_ADA_NOTES_room}/mcp',
          headers: { Authorization: 'Bearer ${IO_GITHUB_ADA_NOTES_token}', 'X-Team': '${IO_GITHUB_ADA_NOTES_X_Team}' },
          variables: [
            { name: 'IO_GITHUB_ADA_NOTES_room', required: true },
            { name: 'IO_GITHUB_ADA_NOTES_token', secret: true, required: true },
            { name: 'IO_GITHUB_ADA_NOTES_X_Team', secret: false, required: true },
          ],
        },
      ],
    })
  })

  it.each([
    ['options of npx', npm({ runtimeArguments: [{ type: 'named', name: '--package', value: 'evil' }] })],
    [
      'options of docker',
      npm({
        registryType: 'oci',
        identifier: 'a/b',
        runtimeArguments: [{ type: 'named', name: '-v', value: '/:/host' }],
      }),
    ],
    ['a flag as its package', npm({ identifier: '--package=evil' })],
    ['an address as its package', npm({ identifier: 'git+https://evil.example/x' })],
    ['a path as its package', npm({ identifier: '../evil' })],
    ['a range as its version', npm({ version: '^1.0.0' })],
    ['no exact version', npm({ version: 'latest' })],
    ['a range without an operator', npm({ version: '1.x' })],
    ['a part of a version', npm({ version: '1' })],
    ['an image with a tag that moves', npm({ registryType: 'oci', identifier: 'a/b:edge' })],
    ['a version that adds a word', npm({ version: '1.0.0 --unsafe' })],
    ['an image without a version', npm({ registryType: 'oci', identifier: 'a/b', version: 'latest' })],
    ['a flag as its image', npm({ registryType: 'oci', identifier: '--privileged', version: '1' })],
    ['another package registry', npm({ registryBaseUrl: 'https://evil.example' })],
    [
      'another package registry in a variable',
      npm({ environmentVariables: [{ name: 'npm_config_registry', value: 'https://evil.example' }] }),
    ],
    [
      'options of Node.js in a variable',
      npm({ environmentVariables: [{ name: 'NODE_OPTIONS', value: '--require=/tmp/x' }] }),
    ],
    ['a library in a variable', npm({ environmentVariables: [{ name: 'LD_PRELOAD' }] })],
    ['a docker host in a variable', npm({ environmentVariables: [{ name: 'DOCKER_HOST', value: 'tcp://evil' }] })],
    ['a variable that is a flag', npm({ environmentVariables: [{ name: '--privileged' }] })],
    ['a template of another secret', npm({ environmentVariables: [{ name: 'A', value: '${GITHUB_TOKEN}' }] })],
    ['a secret in its arguments', npm({ packageArguments: [{ type: 'named', name: '--key', isSecret: true }] })],
    [
      'a hidden secret in its arguments',
      npm({ packageArguments: [{ type: 'named', name: '--key', value: '{k}', variables: { k: { isSecret: true } } }] }),
    ],
    ['a positional argument that is a flag', npm({ packageArguments: [{ type: 'positional', value: '--unsafe' }] })],
    ['a file hash', npm({ fileSha256: 'a'.repeat(64) })],
    ['an unknown kind of package', npm({ registryType: 'constructor' })],
    [
      'variables of similar names, one of them a secret',
      npm({ environmentVariables: [{ name: 'A_B', isSecret: true }, { name: 'A__B' }] }),
    ],
  ])('with %s is not offered, and the reason is given', (_what, wanted) => {
    const { connections, unsupported } = convert({ packages: [wanted] })
    expect(connections).toEqual([])
    expect(unsupported).toHaveLength(1)
  })

  it.each([
    'http://notes.example.com/mcp',
    'https://localhost/mcp',
    'https://127.0.0.1/mcp',
    'https://169.254.169.254/latest',
    'https://[::1]/mcp',
    'https://2130706433/mcp',
    'https://user:password@notes.example.com/mcp',
    'https://{host}/mcp',
    'https://metadata.google.internal/',
    'https://printer.local/',
    'https://intranet/mcp',
    'javascript:alert(1)',
    'https://notes.example.com\\@evil/mcp',
  ])('at the address %s is not offered', (url) => {
    expect(convert({ remotes: [remote({ url, variables: { host: {} } })] }).connections).toEqual([])
  })

  it('has only web links, and texts without control characters', () => {
    const found = convert({
      websiteUrl: 'javascript:alert(1)',
      repository: { url: 'data:text/html,x' },
      title: 'No\u202etes\n\u001b[31m',
      remotes: [remote()],
    })
    expect(found.docs).toBeUndefined()
    expect(found.title).toBe('No tes [31m')
  })

  it.each([
    ['a name with other characters', item({ name: '../../etc' })],
    ['a name that is a flag', item({ name: '--x/y' })],
    ['a version that is a range', item({ version: '*' })],
    ['text instead of a server', { server: 'x' }],
    ['nothing', null],
    ['too many packages', item({ packages: Array.from({ length: 100 }, () => npm()) })],
  ])('is left out with %s', (_what, value) => {
    expect(toRegistryServer(value)).toBeUndefined()
  })
})

let gateway: TestGateway
let ada: TestPerson
let anna: TestPerson
let answer: (request: IncomingMessage, response: ServerResponse) => void
const asked: string[] = []
const fake = createServer((request, response) => {
  asked.push(request.url ?? '')
  answer(request, response)
})
const json = (value: unknown) => (_request: IncomingMessage, response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))

beforeAll(async () => {
  fake.listen(0, '127.0.0.1')
  await once(fake, 'listening')
  const address = fake.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  gateway = await startTestGateway({ registry: { url: `http://127.0.0.1:${port}` } })
  ada = await firstAdministrator(gateway)
  anna = await addPerson(gateway, ada, 'anna', 'member')
})
beforeEach(() => void asked.splice(0))
afterAll(async () => {
  await gateway.close()
  fake.closeAllConnections()
  fake.close()
})

let round = 0
/** Each search has its own words, so that no answer comes from the cache. */
async function search(query = `search=word-${round++}`, who = ada) {
  const { status, text } = await who.request('GET', `/api/registry?${query}`)
  return { status, text, body: JSON.parse(text) }
}
async function post(path: string, body: object, who = ada) {
  const { status, text } = await who.request('POST', `/api/registry/${path}`, body)
  return { status, text, body: JSON.parse(text) }
}
const notes = { server: 'io.github.ada/notes', version: '1.2.3', name: 'notes' }

describe('the registry', () => {
  it('is not contacted before somebody searches', () => {
    expect(asked).toEqual([])
  })

  it('is searched for newest versions, with states, and answers are kept for a while', async () => {
    answer = json({
      servers: [
        item({ remotes: [remote()] }),
        item({ name: 'io.github.ada/old' }, 'deprecated'),
        item({ name: 'bad' }),
      ],
      metadata: { next_cursor: 'more' },
    })
    const first = await search('search=notes&limit=5&cursor=here')
    expect(asked).toEqual(['/v0.1/servers?version=latest&limit=5&search=notes&cursor=here'])
    expect(first.body).toMatchObject({
      items: [
        { id: 'io.github.ada/notes', status: 'active' },
        { id: 'io.github.ada/old', status: 'deprecated', connections: [] },
      ],
      next: 'more',
      skipped: 1,
    })
    expect((await search('search=notes&limit=5&cursor=here')).text).toBe(first.text)
    expect(asked).toHaveLength(1)
  })

  it.each([
    [
      'a redirect',
      (_: IncomingMessage, response: ServerResponse) =>
        response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    ],
    [
      'an answer that is too large',
      (_: IncomingMessage, response: ServerResponse) => response.writeHead(200).end('x'.repeat(5_000_000)),
    ],
    ['text that is not JSON', (_: IncomingMessage, response: ServerResponse) => response.writeHead(200).end('<html>')],
    ['a wrong shape', json({ servers: 'none' })],
    ['too many servers', json({ servers: Array.from({ length: 1000 }, () => item({})) })],
    ['an error', (_: IncomingMessage, response: ServerResponse) => response.writeHead(500).end()],
  ])('answers with %s: the search fails and nothing else is asked', async (_what, hostile) => {
    answer = hostile
    const { status, body } = await search()
    expect(status).toBeGreaterThanOrEqual(400)
    expect(body.error.code).toMatch(/^server-/)
    expect(asked).toHaveLength(1)
  })

  it('is for administrators only', async () => {
    expect((await search('search=x', anna)).status).toBe(403)
    expect((await post('plan', { ...notes, scope: 'user:anna' }, anna)).status).toBe(403)
    expect((await post('add', { ...notes, scope: 'user:anna' }, anna)).status).toBe(403)
    expect(asked).toEqual([])
  })

  it('gives a server in the exact version that was asked for, and not another one', async () => {
    answer = json(item({ version: '6.6.6', packages: [npm({ version: '6.6.6' })] }))
    expect(await post('plan', { ...notes, version: '1.0.0' })).toMatchObject({
      body: { error: { code: 'server-broken' } },
    })
    expect(asked).toEqual(['/v0.1/servers/io.github.ada%2Fnotes/versions/1.0.0'])
    expect((await post('plan', { ...notes, version: 'latest' })).status).toBe(400)
  })

  it('cannot reach an existing secret, whatever name a server asks for', async () => {
    await ada.request('PUT', '/api/secrets/GITHUB_TOKEN', { value: 'the-token-of-github' })
    await ada.request('PUT', '/api/secrets/IO_GITHUB_ADA_NOTES_GITHUB_TOKEN', { value: 'a-similar-token' })
    const environmentVariables = [{ name: 'GITHUB_TOKEN', isRequired: true, isSecret: true }]
    answer = json(item({ version: '1.2.4', packages: [npm({ version: '1.2.4', environmentVariables })] }))
    expect(await post('plan', { ...notes, version: '1.2.4' })).toMatchObject({
      status: 200,
      body: { missing: ['IO_GITHUB_ADA_NOTES_GITHUB_TOKEN'], variables: [{ state: 'missing' }] },
    })
  })

  it('adds a server with its secret, does not trust its hints, and refuses a deleted one', async () => {
    const headers = [
      { name: 'Authorization', value: 'Bearer {token}', variables: { token: { isRequired: true, isSecret: true } } },
    ]
    answer = json(item({ version: '2.0.0', remotes: [remote({ url: 'https://notes.invalid/mcp', headers })] }))
    const wanted = { ...notes, version: '2.0.0' }
    expect(await post('add', wanted)).toMatchObject({ status: 400, body: { error: { code: 'values-missing' } } })
    const values = { IO_GITHUB_ADA_NOTES_token: 'the-token-of-notes' }
    const planned = await post('plan', { ...wanted, values })
    expect(planned.body.definition).toMatchObject({
      trust: 'none',
      url: 'https://notes.invalid/mcp',
      headers: { Authorization: 'Bearer ${IO_GITHUB_ADA_NOTES_token}' },
    })
    expect(planned.text).not.toContain('the-token-of-notes')
    expect((await post('add', { ...wanted, values })).status).toBe(201)
    expect(await readFile(gateway.configFile, 'utf8')).not.toContain('the-token-of-notes')
    answer = json(item({ version: '3.0.0', remotes: [remote()] }, 'deleted'))
    expect(await post('add', { ...notes, version: '3.0.0', name: 'gone' })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('deleted') } },
    })
  })

  it('says that there is no such version', async () => {
    answer = (_request, response) => response.writeHead(404).end()
    expect(await post('plan', { ...notes, version: '9.9.9' })).toMatchObject({
      status: 404,
      body: { error: { code: 'not-found' } },
    })
  })
})
