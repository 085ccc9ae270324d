import { readFileSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImportResult } from '../../src/contract/import.ts'
import type { Principal } from '../../src/contract/principal.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import { fixturePath } from '../fixtures/fixtures.ts'
import { administrator } from '../support/gateway.ts'

export function readShape(file: string): string {
  return readFileSync(join(import.meta.dirname, 'shapes', file), 'utf8')
}

/** A program with the arguments of the shapes that is our recording server. */
export async function writeProgram(folder: string): Promise<string> {
  const file = join(folder, 'notes-server')
  await writeFile(file, `#!/bin/sh\nexec "${process.execPath}" "${fixturePath('recording')}"\n`)
  await chmod(file, 0o755)
  return file
}

/** Previews a text and applies it with the hash of the preview. */
export function importText(gateway: Gateway, text: string, options: Choices = {}): Promise<ImportResult> {
  const { by = administrator, scope, ...choices } = options
  const { hash } = gateway.imports.preview(by, { text, scope })
  return gateway.imports.apply(by, { text, scope, hash, ...choices })
}

type Choices = {
  readonly by?: Principal
  readonly scope?: 'global' | `user:${string}` | `project:${string}` | `agent:${string}`
  readonly replace?: string[]
  readonly environment?: string[]
}

export function outcomes({ servers }: ImportResult): string[] {
  return servers.map(({ name, scope, outcome }) => `${scope === 'global' ? '' : `${scope}/`}${name} ${outcome}`)
}

export function toText(servers: Record<string, object>): string {
  return JSON.stringify({ mcpServers: servers })
}
