import type { Command } from 'commander'
import { z } from 'zod'
import { clientTitles } from '../../../contract/client.ts'
import { GatewayError } from '../../../contract/errors.ts'
import { getCodec, readClient, removeServer } from '../../../formats/formats.ts'
import { toVisible } from '../../../shared/visible.ts'
import { createConnections, toHash } from '../../clients/connection.ts'
import { type ClientFile, invalid, readClientFile, restoreClientFile, writeClientFile } from '../../clients/file.ts'
import { confirm } from '../../terminal/confirm.ts'
import { exit } from '../../terminal/exit.ts'
import { addCommand, type Context, type Run } from '../command.ts'
import { revoke } from './connect.ts'
import { type ConnectableClient, entryName, programsNote, TargetInput, targetOptions, toTarget } from './target.ts'

const Input = TargetInput.extend({ dryRun: z.boolean().default(false), yes: z.boolean().default(false) })

export function addDisconnect(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'disconnect <client>',
    summary: 'remove the gateway from the configuration file of a program, and revoke its token',
    options: [...targetOptions, ['--dry-run', 'say what would happen'], ['--yes', 'do not ask']],
    notes: [
      programsNote,
      '',
      'A file that nobody changed since `connect` is restored byte for byte. Otherwise only the entry is removed.',
    ],
    examples: ['sallyport disconnect claude-code', 'sallyport disconnect cursor --project --yes'],
    input: Input,
    run: disconnect,
  })
}

async function disconnect(context: Context, wanted: z.infer<typeof Input>): Promise<number> {
  const { terminal, settings, request } = context
  const { client, dryRun, yes } = wanted
  const title = clientTitles[client]
  const connections = createConnections(settings)
  const now = readClientFile(toTarget(wanted))
  const file = now.path
  const known = connections.find(client, file)
  const isSame = known !== undefined && now.text !== undefined && toHash(now.text) === known.written
  const without = isSame ? undefined : removeEntry(client, now)
  if (!isSame && without === undefined && known === undefined) {
    throw new GatewayError('request-invalid', `${file} has no entry ${entryName}`)
  }
  const step = isSame ? 'is restored byte for byte' : 'was changed since `connect`: only the entry is removed'
  terminal.talk(`${toVisible(file)} ${step}.`)
  const answer = { client, file, restored: isSame, removed: isSame || without !== undefined }
  if (dryRun) {
    terminal.answer({ ...answer, written: false }, () => 'Nothing was changed.')
    return exit.done
  }
  if (!yes && !(await confirm(terminal, `Remove Sallyport from ${title}?`))) return exit.failed
  // The token is revoked first: if the file cannot be written, the token in it is worth nothing.
  const token = known?.token ?? (await findToken(context, client, now).catch(() => unknownToken))
  const revoked = token === undefined || (token !== unknownToken && (await revoke(request, token)))
  if (isSame) await restoreClientFile(now, { text: known.before, mode: known.mode })
  else if (without !== undefined) await writeClientFile(now, without, { hasToken: false })
  if (revoked) await connections.remove(client, file)
  terminal.answer({ ...answer, written: true, revoked: revoked && token !== undefined }, () => `Disconnected ${title}.`)
  if (!revoked)
    terminal.talk('The token was not revoked: run `sallyport tokens list`, then `sallyport tokens revoke ID`.')
  return exit.done
}

/** The gateway could not be asked which token the entry contains. */
const unknownToken = ''

/** The text without the entry; undefined if there is no entry. */
function removeEntry(client: ConnectableClient, { path, text }: ClientFile): string | undefined {
  if (text === undefined) return undefined
  const codec = getCodec(client)
  const removal = removeServer(codec, text, entryName)
  if (!removal.ok) throw invalid(`${path} cannot be edited: ${removal.message}`)
  return removal.text === text ? undefined : removal.text
}

/** The id of the token that is written in the entry, for a file that another data folder connected. */
async function findToken(
  { request }: Context,
  client: ConnectableClient,
  { text = '' }: ClientFile,
): Promise<string | undefined> {
  const reading = readClient(client, text)
  const entry = reading.ok ? reading.servers.find(({ key }) => key === entryName) : undefined
  const written =
    entry?.definition.headers?.Authorization?.replace('Bearer ', '') ?? entry?.definition.env?.SALLYPORT_TOKEN
  if (written === undefined || written.includes('${')) return undefined
  const page = await request('Finding the token', (api) => api.tokens.list())
  return page.items.find(({ prefix, revokedAt }) => revokedAt === undefined && written.startsWith(`${prefix}_`))?.id
}
