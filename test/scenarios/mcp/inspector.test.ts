import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import { parseJson } from '../../fixtures/lib/json-rpc.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { namesIn, startRecordingGateway, textOf } from './raw.ts'

const run = promisify(execFile)
const inspector = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json'))

let gateway: TestGateway
let record: string
let folder: string

beforeAll(async () => {
  const started = await startRecordingGateway({ toolsets: { small: { tools: ['rec_echo'] } } })
  ;({ gateway, record, folder } = started)
  return started.close
})

/** The inspector as a program of its own, the way a person would run it; its own files go into the test's folder. */
async function inspect(path: string, args: readonly string[], token?: string): Promise<unknown> {
  const header = `Authorization: Bearer ${token ?? (await gateway.token('inspector'))}`
  const program = [join(inspector, 'clients/launcher/build/index.js'), '--cli', `${gateway.url}${path}`]
  const options = ['--transport', 'http', '--header', header, '--stored-auth-only', '--format', 'json', '--quiet']
  const env = { PATH: process.env.PATH, HOME: folder }
  const { stdout } = await run(process.execPath, [...program, ...options, ...args], { env, cwd: folder })
  const answer = parseJson(stdout)
  return Object(answer).result ?? answer
}

describe.each(['legacy', 'modern'])("the MCP inspector's own program in the %s era", (era) => {
  it('lists what the gateway offers', async () => {
    const result = await inspect('/mcp', ['--protocol-era', era, '--method', 'tools/list'])
    expect(namesIn(result)).toEqual(expect.arrayContaining(['rec_echo', 'rec_structured']))
  })

  it('calls a tool of a server behind the gateway', async () => {
    const text = `inspected, ${era}`
    const call = ['--method', 'tools/call', '--tool-name', 'rec_echo', '--tool-args-json', JSON.stringify({ text })]
    expect(textOf(await inspect('/mcp/t/small', ['--protocol-era', era, ...call]))).toBe(text)
    expect((await readRecord(record)).at(-1)).toMatchObject({ name: 'echo', arguments: { text } })
  })
})

it("refuses the inspector's program without a token of this gateway", async () => {
  const attempt = inspect('/mcp', ['--method', 'tools/list'], 'made-up')
  await expect(attempt).rejects.toMatchObject({ code: expect.any(Number), stderr: expect.stringMatching(/401|auth/i) })
})
