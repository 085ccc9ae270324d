import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { decrypt } from '../../src/secrets/cipher.ts'
import { deriveKey, toKeyCheck } from '../../src/storage/key.ts'
import { readerOf, temporaryFolder } from '../storage/support.ts'
import { programPath } from '../support/programs.ts'
import { administrator, openSecrets } from './support.ts'

const program = programPath('test/secrets/rotating-process')
const count = 20

const toValue = (name: string) => `value-of-${name}-0123456789`

/** Rotates until it is killed, at a moment that nobody chose. */
async function rotateAndDie(folder: string): Promise<void> {
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 60))
  child.kill('SIGKILL')
  await ended
}

/** How many of the keys at hand open each secret, by the version that its row names. */
export function countOpening(folder: string): number[] {
  const reader = readerOf(folder)
  const keys = readFileSync(join(folder, 'key'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => Buffer.from(line, 'base64'))
  const versions = reader.all('select version, proof from secret_keys')
  return reader.all('select * from secrets').map((row) => {
    const place = { id: String(row.id), scope: String(row.scope), name: String(row.name) }
    const opening = keys.flatMap((key) => {
      const version = versions.find(({ proof }) => proof === toKeyCheck(key))?.version
      if (version === undefined) return [] // written to the file, and not used for anything yet
      const value = decrypt(
        deriveKey(key, 'secrets'),
        { ...place, keyVersion: Number(version) },
        String(row.ciphertext),
      )
      return value ? [value.reveal()] : []
    })
    return opening.filter((value) => value === toValue(place.name)).length
  })
}

/** A rotation that is killed at any moment leaves every secret open under exactly one key. */
export async function surviveKills(kills: number): Promise<void> {
  const folder = temporaryFolder()
  const names = await fill(folder)
  for (let kill = 0; kill < kills; kill++) {
    await rotateAndDie(folder)
    expect(countOpening(folder)).toEqual(names.map(() => 1))
  }
  const last = await openSecrets({ folder })
  await last.close()
  const [{ newest } = {}] = readerOf(folder).all('select max(version) as newest from secret_keys')
  expect(Number(newest)).toBeGreaterThan(1)
  expect(readerOf(folder).all('select distinct key_version from secrets')).toEqual([{ key_version: newest }])
  expect(readFileSync(join(folder, 'key'), 'utf8').trim().split('\n')).toHaveLength(1)
  expect(countOpening(folder)).toEqual(names.map(() => 1))
}

export async function fill(folder: string): Promise<string[]> {
  const stage = await openSecrets({ folder })
  const names = Array.from({ length: count }, (_, index) => `SECRET_${index}`)
  for (const name of names) await stage.secrets.set(administrator, { scope: 'global', name, value: toValue(name) })
  await stage.close()
  return names
}
