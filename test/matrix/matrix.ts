import { fileURLToPath } from 'node:url'
import { StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as PipeV2 } from '@modelcontextprotocol/client/stdio'
import { StdioClientTransport as PipeV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { type HttpFixture, startHttpFixture, stdioFixture } from '../fixtures/fixtures.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type ClientOptions, connectV1, connectV2, type MatrixClient } from './client.ts'
import { hearing } from './hearing.ts'
import { offers } from './offers.ts'
import { protocol } from './protocol.ts'
import { questions } from './questions.ts'
import type { Drives, Stage } from './stage.ts'
import {
  type ClientKind,
  clientTitles,
  type FeatureName,
  featureNames,
  features,
  type Pair,
  revisionOf,
  type ServerKind,
  serverKinds,
  serverTitles,
  silence,
  type Verdict,
  verdictOf,
} from './table.ts'

/** A kind of client, and the SDK that plays it. */
export type Player = ClientKind & { readonly sdk: 'v1' | 'v2' }

const program = fileURLToPath(new URL('../../bin/sallyport.js', import.meta.url))

export const drives: Drives<FeatureName> = { ...offers, ...hearing, ...questions, ...protocol }

/** What never comes is not waited for as long. */
function patienceOf(verdict: Verdict): number {
  return verdict.kind !== 'possible' && verdict.fails === silence ? 200 : 10_000
}

/** Every feature between these players and every kind of server, through one gateway. */
export function describeMatrix(...players: readonly Player[]): void {
  const running: HttpFixture[] = []
  let gateway: TestGateway

  beforeAll(async () => {
    const definitions: Record<string, Definition> = {}
    for (const kind of serverKinds) definitions[toName(kind)] = await start(kind, running)
    gateway = await startTestGateway({ servers: definitions, rules: [{ action: 'allow' }] })
    for (const kind of serverKinds) await gateway.reach(toName(kind), 'connected')
    return async () => {
      await gateway.close()
      await Promise.all(running.map((server) => server.stop()))
    }
  })

  for (const player of players) {
    describe(toTitle(player), () => {
      for (const server of serverKinds) describePair(() => gateway, player, server)
    })
  }
}

function describePair(getGateway: () => TestGateway, player: Player, server: ServerKind): void {
  const pair: Pair = { client: player, server }
  const title = `before a server of ${revisionOf[server.era]} over ${serverTitles[server.transport]}`
  describe(title, () => {
    const connect = (options: ClientOptions) => connectPlayer(getGateway(), player, toName(server), options)
    let client: MatrixClient

    beforeAll(async () => {
      client = await connect({})
      return () => client.close()
    })

    for (const feature of featureNames) {
      const verdict = verdictOf(feature, pair)
      it(toSentence(feature, verdict), async () => {
        const trial = tryOut(feature, { pair, client, connect }, patienceOf(verdict))
        if (verdict.kind === 'possible') return trial
        await expect(trial, 'It works: take it out of the list').rejects.toThrow(verdict.fails)
      })
    }
  })
}

function toTitle({ era, transport, sdk }: Player): string {
  return `an agent of ${revisionOf[era]} over ${clientTitles[transport]} (SDK ${sdk})`
}

function toSentence(feature: FeatureName, verdict: Verdict): string {
  const { can } = features[feature]
  if (verdict.kind === 'possible') return `can ${can}`
  return verdict.kind === 'impossible' ? `cannot ${can}: ${verdict.why}` : `should ${can} (a defect): ${verdict.why}`
}

export async function tryOut(
  feature: FeatureName,
  parts: Pick<Stage, 'pair' | 'client'> & { connect(options: ClientOptions): Promise<MatrixClient> },
  limitMs: number,
): Promise<void> {
  const { client } = parts
  const others: MatrixClient[] = []
  client.heard.length = 0
  client.asked.length = 0
  client.refused.length = 0
  const stage: Stage = {
    ...parts,
    until: (look) => poll(look, limitMs),
    async connect(options) {
      const other = await parts.connect(options)
      others.push(other)
      return other
    },
  }
  try {
    await drives[feature](stage)
  } finally {
    await Promise.all(others.map((other) => other.close()))
  }
}

async function connectPlayer(
  gateway: TestGateway,
  { era, transport, sdk }: Player,
  server: string,
  options: ClientOptions,
): Promise<MatrixClient> {
  const token = await gateway.token('matrix')
  if (transport === 'stdio') {
    const args = [program, 'stdio', '--server', server, '--url', gateway.url, '--token', token]
    const command = { command: process.execPath, args, stderr: 'ignore' as const }
    return sdk === 'v1' ? connectV1(new PipeV1(command), options) : connectV2(new PipeV2(command), era, options)
  }
  const url = new URL(`/mcp/s/${server}`, gateway.url)
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  if (sdk === 'v1') return connectV1(new HttpV1(url, { requestInit }), options)
  return connectV2(new HttpV2(url, { requestInit }), era, options)
}

function toName({ era, transport }: ServerKind): string {
  return `${era}-${transport}`
}

type Definition = NonNullable<ConfigInput['servers']>[string]

async function start({ era, transport }: ServerKind, running: HttpFixture[]): Promise<Definition> {
  const args = ['--era', era, '--transport', transport]
  if (transport === 'stdio') return stdioFixture('matrix', args)
  const server = await startHttpFixture('matrix', [...args, '--stdin-guard'])
  running.push(server)
  return { transport: transport === 'old-sse' ? 'sse' : 'http', url: server.url }
}
