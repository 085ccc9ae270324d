import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { AuditEntry } from '../../../src/contract/audit.ts'
import type { Config } from '../../../src/contract/config.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../../src/gateway/gateway.ts'
import { type DatabaseKind, type Place, placeOn } from '../../storage/support.ts'
import { roomy } from '../../support/gateway.ts'
import { key } from './people.ts'

/** One database and one configuration file, on which gateways start and stop. */
export type ChangeStage = {
  readonly place: Place
  readonly file: string
  start(options?: Partial<GatewayOptions>): Promise<Gateway>
  read(): Promise<string>
  write(config: object, comment?: string): Promise<void>
}

export async function createChangeStage(kind: DatabaseKind, name = 'sallyport.yaml'): Promise<ChangeStage> {
  const place = await placeOn(kind)
  const file = join(place.folder, name)
  await mkdir(join(place.folder, 'data'))
  const stage: ChangeStage = {
    place,
    file,
    async start(options = {}) {
      const gateway = await createGateway({
        configFile: file,
        dataFolder: join(place.folder, 'data'),
        databaseUrl: place.databaseUrl,
        environment: { ...process.env, SALLYPORT_KEY: key },
        passwordCost: { logN: 4, r: 1, p: 1 },
        graceMs: 100,
        ...options,
      })
      onTestFinished(() => gateway.close())
      return gateway
    },
    read: () => readFile(file, 'utf8'),
    // JSON is YAML as well.
    write: (config, comment = '') =>
      writeFile(file, `${comment && `# ${comment}\n`}${JSON.stringify(roomy(config as Partial<Config>))}\n`),
  }
  await stage.write({})
  return stage
}

type Shown = Pick<AuditEntry, 'kind' | 'principal' | 'subject' | 'body'>

/** The record of changes of the configuration, oldest first; sequences tell the order of one gateway. */
export async function listChanges(gateway: Gateway): Promise<Shown[]> {
  const { items } = await gateway.audit.list({ limit: 200 })
  return items
    .filter(
      ({ kind, body }) => kind === 'change-outcome' || (kind === 'change' && String(body.id).startsWith('change_')),
    )
    .reverse()
    .map(({ kind, principal, subject, body }) => ({ kind, principal, subject, body }))
}

/** In short: `user:ada server:a applied`. */
export async function listAuthors(gateway: Gateway): Promise<string[]> {
  const entries = await listChanges(gateway)
  const outcomes = new Map(
    entries.filter(({ kind }) => kind === 'change-outcome').map(({ body }) => [body.id, String(body.state)]),
  )
  return entries
    .filter(({ kind }) => kind === 'change')
    .map(({ principal, subject, body }) => `${principal} ${subject} ${outcomes.get(body.id) ?? 'open'}`)
}
