import { resolve } from 'node:path'
import { z } from 'zod'
import { ClientName, clientTitles } from '../../../contract/client.ts'
import { GatewayError } from '../../../contract/errors.ts'
import { thisMachine, toProjectFile, toUserFile } from '../../clients/places.ts'
import type { OptionSpec } from '../command.ts'

/** The programs that `connect` knows. */
export const ConnectableClient = ClientName.extract([
  'claude-code',
  'claude-desktop',
  'cursor',
  'vscode',
  'opencode',
  'codex',
  'gemini-cli',
  'windsurf',
])
export type ConnectableClient = z.infer<typeof ConnectableClient>

/** The name of the entry in the file of the program. */
export const entryName = 'sallyport'

export const targetOptions: readonly OptionSpec[] = [
  ['--project', 'use the file in the current folder, instead of the file for all folders'],
  ['--file <file>', 'use this file'],
]
export const TargetInput = z.object({
  client: ConnectableClient,
  project: z.boolean().default(false),
  file: z.string().optional(),
})

export const programsNote = `Programs: ${ConnectableClient.options.join(', ')}`

export function toTarget({ client, project, file }: z.infer<typeof TargetInput>): string {
  if (project && file !== undefined) throw wrong('--project and --file cannot be used together')
  if (file !== undefined) return resolve(file)
  if (!project) return toUserFile(client, thisMachine())
  const found = toProjectFile(client, thisMachine())
  if (found === undefined) throw wrong(`${clientTitles[client]} has no file in a folder: leave --project out`)
  return found
}

function wrong(message: string): GatewayError {
  return new GatewayError('request-invalid', message)
}
