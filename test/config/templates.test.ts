import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createEnvironmentLookup, originsOf, resolveDefinition } from '../../src/config/config.ts'
import { GatewayError } from '../../src/contract/errors.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import { createFolder, startStore } from './support.ts'

function withEnv(env: Record<string, string>): ServerDefinition {
  return ServerDefinition.parse({ transport: 'stdio', command: 'x', env })
}

function withHeader(value: string): ServerDefinition {
  return ServerDefinition.parse({ transport: 'http', url: 'https://x.example', headers: { Authorization: value } })
}

function fill(text: string, values: Record<string, string> = {}): string | undefined {
  const { definition } = resolveDefinition(withEnv({ TEXT: text }), (name) => values[name])
  return definition.transport === 'stdio' ? definition.env.TEXT : undefined
}

describe('templates', () => {
  it.each([
    ['Bearer ${TOKEN}', { TOKEN: 'abc' }, 'Bearer abc'],
    ['${A}${B}', { A: '1', B: '2' }, '12'],
    ['${A:-warn}', {}, 'warn'],
    ['${A:-warn}', { A: 'info' }, 'info'],
    ['${A:-warn}', { A: '' }, 'warn'],
    ['${A:-}', {}, ''],
    ['${A}', { A: '' }, ''],
    ['${A:-a:-b}', {}, 'a:-b'],
    ['${A:-two\nlines}', {}, 'two\nlines'],
    ['$${A}', { A: 'x' }, '${A}'],
    ['$${A} ${A}', { A: 'x' }, '${A} x'],
    ['$A $$ $5 {A}', { A: 'x' }, '$A $$ $5 {A}'],
  ])('fills %j', (text, values, expected) => {
    expect(fill(text, values)).toBe(expected)
  })

  it('counts in command, args, env, url and headers, and nowhere else', () => {
    const lookup = () => 'V'
    const stdio = ServerDefinition.parse({
      transport: 'stdio',
      command: '${A}',
      args: ['${A}'],
      env: { '${A}': '${A}' },
      description: '${A}',
      tools: { include: ['${A}'] },
    })
    expect(resolveDefinition(stdio, lookup).definition).toMatchObject({
      command: 'V',
      args: ['V'],
      env: { '${A}': 'V' },
      description: '${A}',
      tools: { include: ['${A}'] },
    })
    const http = ServerDefinition.parse({ transport: 'sse', url: 'https://${A}', headers: { '${A}': '${A}' } })
    expect(resolveDefinition(http, lookup).definition).toMatchObject({ url: 'https://V', headers: { '${A}': 'V' } })
  })

  it('never expands what came out of a variable', () => {
    expect(fill('${A}', { A: '${B} $${C}', B: 'secret' })).toBe('${B} $${C}')
  })

  it('leaves text without a template exactly as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        fc.pre(!text.includes('${') && !text.includes('\0'))
        expect(fill(text)).toBe(text)
      }),
    )
  })

  it('puts any value in unchanged', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (value, around) => {
        fc.pre(!around.includes('$') && !`${value}${around}`.includes('\0'))
        expect(fill(`${around}\${A}${around}`, { A: value })).toBe(`${around}${value}${around}`)
      }),
    )
  })

  it('tells every missing name once', () => {
    const { missing } = resolveDefinition(withEnv({ X: '${B} ${A} ${B}', Y: '${C:-ok}' }), () => undefined)
    expect(missing).toEqual(['A', 'B'])
  })

  it.each(['\r\nX: y', 'a\nb', 'a\rb', 'a\0b', 'snow ☃'])('refuses %j in a header without repeating it', (value) => {
    const attempt = () => resolveDefinition(withHeader('${T}'), () => `hunter2${value}`)
    expect(attempt).toThrowError(GatewayError)
    expect(attempt).toThrowError(/^headers.Authorization contains/)
    expect(attempt).not.toThrowError(/hunter2/)
  })

  it('refuses NUL anywhere, because the system would repeat the value in its message', () => {
    expect(() => fill('${A}', { A: 'hunter2\0' })).toThrowError(/^env.TEXT contains a NUL character/)
  })
})

describe('environment variables', () => {
  it('resolve only if the operator lists them', () => {
    const lookup = createEnvironmentLookup({ A: '1', B: '2' }, ['A'])
    expect([lookup('A'), lookup('B'), lookup('C')]).toEqual(['1', undefined, undefined])
  })

  it('of the gateway itself never resolve, even when listed', () => {
    const environment = { SALLYPORT_TOKEN: 'x', sallyport_token: 'x' }
    const lookup = createEnvironmentLookup(environment, Object.keys(environment))
    expect([lookup('SALLYPORT_TOKEN'), lookup('sallyport_token')]).toEqual([undefined, undefined])
  })

  it('do not include what every object inherits', () => {
    const lookup = createEnvironmentLookup({}, ['constructor', 'toString', '__proto__'])
    expect([lookup('constructor'), lookup('toString'), lookup('__proto__')]).toEqual([undefined, undefined, undefined])
  })

  it('that are missing are all named, with the reason', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', 'environment: [LISTED]\n')
    await using running = await startStore(file, { UNLISTED: 'hunter2', SALLYPORT_KEY: 'hunter2' })
    const definition = withEnv({ X: '${LISTED} ${UNLISTED} ${NOWHERE} ${SALLYPORT_KEY}' })
    const error = caught(() => running.store.resolve(definition, originsOf(definition, 'global')))
    expect(error).toMatchObject({
      code: 'variable-missing',
      details: { missing: ['LISTED', 'NOWHERE', 'SALLYPORT_KEY', 'UNLISTED'] },
    })
    expect(error.message).toBe(
      'Variables are missing: LISTED (listed, but not set), NOWHERE, ' +
        "SALLYPORT_KEY (the gateway's own variables are never passed to servers), " +
        'UNLISTED (set, but not listed under `environment`)',
    )
  })

  it('are read when a connection is made, so that a changed list counts at once', async () => {
    await using folder = await createFolder()
    const file = await folder.write('sallyport.yaml', 'environment: []\n')
    await using running = await startStore(file, { TOKEN: 'abc' })
    const definition = withHeader('Bearer ${TOKEN}')
    expect(caught(() => running.store.resolve(definition, originsOf(definition, 'global'))).code).toBe(
      'variable-missing',
    )
    await folder.write('sallyport.yaml', 'environment: [TOKEN]\n')
    await running.store.reload()
    expect(running.store.resolve(definition, originsOf(definition, 'global'))).toMatchObject({
      headers: { Authorization: 'Bearer abc' },
    })
  })
})

function caught(attempt: () => unknown): GatewayError {
  try {
    attempt()
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('nothing was thrown')
}
