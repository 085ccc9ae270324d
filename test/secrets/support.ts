import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createConfig, type Environment, isTrusted, originsOf } from '../../src/config/config.ts'
import type { Principal } from '../../src/contract/principal.ts'
import type { ScopeKey } from '../../src/contract/scope.ts'
import { ServerDefinition } from '../../src/contract/server.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createMasking, type Masking } from '../../src/masking/masking.ts'
import { createSecrets, type Secrets } from '../../src/secrets/secrets.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { plainSeal } from '../config/record.ts'
import { ids, open, type Place } from '../storage/support.ts'

export const administrator: Principal = { kind: 'user', name: 'root', role: 'administrator', person: true }
export const alice: Principal = { kind: 'user', name: 'alice', role: 'member', person: true }
export const auditor: Principal = { kind: 'user', name: 'ann', role: 'auditor', person: true }
export const agent: Principal = { kind: 'agent', name: 'reviewer' }

export type Stage = {
  readonly secrets: Secrets
  readonly storage: Storage
  readonly masking: Masking
  /** Connections that were told to connect anew, so far. */
  readonly reconnected: string[]
  close(): Promise<void>
}

type StageOptions = { environment?: Environment; listed?: readonly string[] }

/** The secrets of one data folder, with everything that they stand on. */
export async function openSecrets(place: Place, { environment = {}, listed = [] }: StageOptions = {}): Promise<Stage> {
  await mkdir(place.folder, { recursive: true })
  const file = join(place.folder, 'sallyport.json')
  await writeFile(file, JSON.stringify({ environment: listed, projects: { shop: { owners: ['alice'] } } }))
  const parts = { clock: systemClock, log: silentLog, environment }
  const storage = await open(place)
  const config = await createConfig({ ...parts, file, emit() {}, record: storage.configChanges, seal: plainSeal })
  const masking = createMasking()
  const reconnected: string[] = []
  const secrets = await createSecrets({
    ...parts,
    storage,
    config,
    masking,
    folder: place.folder,
    owners: {
      findUserId: (user) => `user-${user}`,
      ownsProject: (project, user) => config.current().projects[project]?.owners.includes(user) ?? false,
      ownerOf: (session) => (session === 'work' ? 'alice' : undefined),
      trusts: (scope) => isTrusted(config.current(), scope),
    },
    ids,
    onChange: (connections) => void reconnected.push(...connections),
  }).catch(async (error) => {
    await config.close()
    await storage.close()
    throw error
  })
  const close = async () => {
    secrets.close()
    await config.close()
    await storage.close()
  }
  onTestFinished(close)
  return { secrets, storage, masking, reconnected, close }
}

/** An entry of a server that somebody wrote into a scope. */
export function written(scope: ScopeKey, fields: object, name = 'github') {
  const whole = 'transport' in fields ? fields : { transport: 'http', url: 'https://api.github.com/mcp', ...fields }
  const definition = ServerDefinition.parse(whole)
  return { name, definition, origins: originsOf(definition, scope) }
}

export const bearer = { headers: { Authorization: 'Bearer ${TOKEN}' } }
