import {
  type ConfigProblem,
  findConfigFile,
  formatProblem,
  readConfig,
  readEnvFile,
  toEnvPath,
  type Variables,
  withEnvFile,
} from '../../../config/config.ts'
import type { Config } from '../../../contract/config.ts'
import { toGatewayError } from '../../../contract/errors.ts'
import { countOf } from '../../../shared/words.ts'
import { type Finding, note, ok, problem } from './finding.ts'

export type FoundConfig = { readonly file: string | undefined; readonly config?: Config; readonly findings: Finding[] }

/** Checks the file that the running gateway uses, else the file that `serve` would use. */
export async function checkConfiguration(explicit: string | undefined, dataFolder: string): Promise<FoundConfig> {
  const file = findConfigFile({ explicit, environment: process.env, cwd: process.cwd(), dataFolder })
  if (file === undefined) {
    const message = 'The current folder has no configuration file; the first start writes one'
    return { file, findings: [note('configuration', message, 'sallyport serve --demo')] }
  }
  try {
    const reading = await readConfig(file)
    if (!reading.ok) return { file, findings: reading.problems.map(toFinding) }
    const notices = reading.notices(Date.now()).map((notice) => note('configuration', formatProblem(notice)))
    return { file, config: reading.config, findings: [ok('configuration', `${file} is valid`), ...notices] }
  } catch (error) {
    const fix = `Create it, or name another one: sallyport serve --config FILE`
    return { file, findings: [problem('configuration', toGatewayError(error).message, fix)] }
  }
}

/** The variables that `serve` would have here: those of this process and those of the `envFile`. */
export function readVariables(file: string, config: Config): Variables & { readonly findings: readonly Finding[] } {
  const variables = { environment: process.env, listed: config.environment }
  const path = toEnvPath(file, config)
  if (path === undefined) return { ...variables, findings: [] }
  try {
    const values = readEnvFile(path)
    return {
      ...withEnvFile(variables, values),
      findings: [ok('envFile', `${path} has ${countOf(values.size, 'variable')}`)],
    }
  } catch (error) {
    const { message } = toGatewayError(error)
    return { ...variables, findings: [problem('envFile', message, `Correct ${path}, or remove envFile from ${file}`)] }
  }
}

function toFinding(found: ConfigProblem): Finding {
  const place = `${found.file}:${found.line}`
  return problem('configuration', formatProblem(found), `Correct ${place}, then: sallyport config check ${found.file}`)
}
