import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { z } from 'zod'

/** Options of every command. */
export const GlobalOptions = z.object({
  json: z.boolean().default(false),
  gateway: z.string().optional(),
  url: z.string().optional(),
  token: z.string().optional(),
  data: z.string().optional(),
  as: z.string().optional(),
  passwordStdin: z.boolean().default(false),
})
export type GlobalOptions = z.infer<typeof GlobalOptions>

export type Settings = {
  /** `--data`, else `.sallyport` in the current folder if it exists, else in the home folder. */
  readonly dataFolder: string
  /** `--data`, else `.sallyport` in the current folder. `serve` uses it. */
  readonly folderHere: string
  /**
   * `--data`, else `.sallyport` in the home folder. `stdio` uses it: MCP clients start `stdio` in any folder, and a folder
   * from a foreign repository must not decide which commands run.
   */
  readonly folderOfUser: string
  /** From the command line or the environment; undefined if the data folder is used. */
  readonly url: string | undefined
  readonly token: string | undefined
  /** Connection string of a PostgreSQL database, instead of the file in the data folder. It contains a password. */
  readonly databaseUrl: string | undefined
  /** `--data` is on the command line. */
  readonly dataGiven: boolean
  /** The data folder comes from `--data` or `SALLYPORT_DATA`, not from a search. */
  readonly dataNamed: boolean
  /** The user who signs in for this command; `passwordOnInput`: the password is on standard input. */
  readonly person?: { readonly name: string; readonly passwordOnInput: boolean }
}

export function toSettings(options: GlobalOptions, env: NodeJS.ProcessEnv): Settings {
  const given = options.data ?? (env.SALLYPORT_DATA || undefined)
  const folderHere = resolve(given ?? '.sallyport')
  const folderOfUser = resolve(given ?? join(homedir(), '.sallyport'))
  return {
    dataFolder: [folderHere, folderOfUser].find((folder) => existsSync(folder)) ?? folderHere,
    folderHere,
    folderOfUser,
    url: options.gateway ?? options.url ?? (env.SALLYPORT_URL || undefined),
    token: options.token ?? (env.SALLYPORT_TOKEN || undefined),
    databaseUrl: env.SALLYPORT_DATABASE_URL || undefined,
    dataGiven: options.data !== undefined,
    dataNamed: given !== undefined,
    ...(options.as !== undefined && { person: { name: options.as, passwordOnInput: options.passwordStdin } }),
  }
}
